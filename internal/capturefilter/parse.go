package capturefilter

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a filter's text.
const (
	maxFilterBytes = 1024
	maxNesting     = 64
)

// Parse implements the part of tcpdump's language (pcap-filter(7)) for protocols, addresses, ports and
// lengths, with libpcap's meaning. `and` and `or` have equal precedence, from the left. An address or port
// without qualifiers takes the previous ones. Everything else is refused. The empty filter is nil, which
// keeps everything.
//
// Existing compilers in Go misread parts of the language: one ignores portrange.
func Parse(text string) (*Filter, error) {
	if len(text) > maxFilterBytes {
		return nil, fmt.Errorf("filter of %d bytes: want at most %d", len(text), maxFilterBytes)
	}
	p := parser{tokens: tokens(text)}
	if len(p.tokens) == 0 {
		return nil, nil
	}
	keep, err := p.expression(0)
	if err == nil && p.peek() != "" {
		err = fmt.Errorf("%q is not expected here: want and, or, or the end", p.peek())
	}
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", text, err)
	}
	return &Filter{keep}, nil
}

// tokens are words, parentheses and operators.
func tokens(text string) (all []string) {
	for text = strings.TrimLeft(text, space); text != ""; text = strings.TrimLeft(text, space) {
		length := strings.IndexAny(text, space+"()!&|[]<>=")
		switch {
		case strings.HasPrefix(text, "&&") || strings.HasPrefix(text, "||"):
			length = 2
		case length == 0:
			length = 1
		case length < 0:
			length = len(text)
		}
		all = append(all, text[:length])
		text = text[length:]
	}
	return all
}

const space = " \t\r\n"

type parser struct{ tokens []string }

func (p *parser) peek() string { return p.ahead(0) }

func (p *parser) ahead(n int) string {
	if n >= len(p.tokens) {
		return ""
	}
	return p.tokens[n]
}

func (p *parser) next() string {
	t := p.peek()
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept consumes the next token if it is one of the words.
func (p *parser) accept(words ...string) bool {
	if t := p.peek(); t != "" && slices.Contains(words, t) {
		p.next()
		return true
	}
	return false
}

// qualifiers of an address or port. A later one without qualifiers has the same.
type qualifiers struct {
	protocol  string
	direction direction
	kind      string
}

func (p *parser) expression(depth int) (predicate, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("parentheses and negations are nested more than %d deep", maxNesting)
	}
	var last *qualifiers
	left, err := p.term(depth, &last)
	for err == nil {
		combine := p.connective()
		if combine == nil {
			return left, nil
		}
		var right predicate
		if isID(p.peek()) && last != nil {
			right, err = last.match(p.next())
		} else {
			right, err = p.term(depth, &last)
		}
		if err == nil {
			left = combine(left, right)
		}
	}
	return nil, err
}

// connective consumes `and` or `or`, and returns the function for it, or nil.
func (p *parser) connective() func(a, b predicate) predicate {
	switch {
	case p.accept("and", "&&"):
		return and
	case p.accept("or", "||"):
		return or
	}
	return nil
}

func isID(token string) bool {
	return token != "" && (strings.ContainsAny(token[:1], "0123456789") || strings.Contains(token, ":"))
}

func (p *parser) term(depth int, last **qualifiers) (predicate, error) {
	switch {
	case p.accept("not", "!"):
		if isID(p.peek()) {
			return nil, fmt.Errorf("not %s: say what it is, such as not host or not port", p.peek())
		}
		if depth > maxNesting {
			return nil, fmt.Errorf("parentheses and negations are nested more than %d deep", maxNesting)
		}
		inner, err := p.term(depth+1, last)
		if err != nil {
			return nil, err
		}
		return not(inner), nil
	case p.accept("("):
		*last = nil
		inner, err := p.expression(depth + 1)
		if err == nil && !p.accept(")") {
			err = fmt.Errorf("%q: want )", p.peek())
		}
		return inner, err
	}
	return p.primitive(last)
}

func (p *parser) primitive(last **qualifiers) (predicate, error) {
	*last = nil
	if p.peek() == "less" || p.peek() == "greater" {
		return p.length()
	}
	var q qualifiers
	if _, known := protocols[p.peek()]; known || p.peek() == "ether" {
		q.protocol = p.next()
	}
	if p.peek() == "broadcast" || p.peek() == "multicast" {
		return q.group(p.next())
	}
	left := len(p.tokens)
	q.direction = p.direction()
	if slices.Contains([]string{"host", "net", "port", "portrange", "proto"}, p.peek()) {
		q.kind = p.next()
	}
	switch {
	case q.kind == "proto":
		return q.number(p.next())
	case p.peek() == "(" && q.kind != "":
		p.next()
		return p.ids(q)
	case isID(p.peek()) && q.kind == "" && len(p.tokens) == left:
		return nil, fmt.Errorf("%s: say what it is, such as host %s or port %s", p.peek(), p.peek(), p.peek())
	case isID(p.peek()):
		if q.kind == "net" && p.ahead(1) == "mask" {
			return q.mask(p.next(), p.next(), p.next())
		}
		*last = &q
		return q.match(p.next())
	case q.protocol != "" && q.protocol != "ether" && q == (qualifiers{protocol: q.protocol}) && isEnd(p.peek()):
		return protocols[q.protocol], nil
	}
	return nil, p.unknown(q)
}

func isEnd(token string) bool {
	return slices.Contains([]string{"", "and", "or", "&&", "||", ")"}, token)
}

func (p *parser) unknown(q qualifiers) error {
	switch {
	case p.peek() == "":
		return fmt.Errorf("it ends where an expression such as udp, host 198.18.0.1 or port 698 is wanted")
	case p.peek() == "[":
		return fmt.Errorf("bytes of headers, such as %s[0], cannot be asked for here: use protocols, hosts, nets, ports and lengths", q.protocol)
	case q.kind != "":
		return fmt.Errorf("%q is no address or number: names are not looked up for %s", p.peek(), q.kind)
	}
	return fmt.Errorf("%q is not understood: want ether, ip, ip6, arp, icmp, tcp, udp and the like, [src|dst] host, net, port or portrange, "+
		"broadcast, multicast, less, greater, and, or, not", p.peek())
}

func (p *parser) direction() direction {
	words := [3]string{p.peek(), p.ahead(1), p.ahead(2)}
	both := words[0] == "src" && words[2] == "dst" || words[0] == "dst" && words[2] == "src"
	switch {
	case both && (words[1] == "or" || words[1] == "||"):
		p.tokens = p.tokens[3:]
		return sourceOrDestination
	case both && (words[1] == "and" || words[1] == "&&"):
		p.tokens = p.tokens[3:]
		return sourceAndDestination
	case p.accept("src"):
		return source
	case p.accept("dst"):
		return destination
	}
	return sourceOrDestination
}

// ids reads the rest of a list such as (80 or 443).
func (p *parser) ids(q qualifiers) (predicate, error) {
	left, err := q.match(p.next())
	for err == nil && !p.accept(")") {
		combine := p.connective()
		if combine == nil {
			return nil, fmt.Errorf("%q: want and, or, or )", p.peek())
		}
		var right predicate
		if right, err = q.match(p.next()); err == nil {
			left = combine(left, right)
		}
	}
	return left, err
}

func (p *parser) length() (predicate, error) {
	word, number := p.next(), p.next()
	n, err := unsigned(number, 32)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", word, err)
	}
	if word == "less" {
		return func(f frame) matchResult { return resultOf(uint64(f.wireLength) <= n) }, nil
	}
	return func(f frame) matchResult { return resultOf(uint64(f.wireLength) >= n) }, nil
}

// unsigned reads a decimal or 0x number. Leading zeros are refused, because C reads them as octal.
func unsigned(text string, bits int) (uint64, error) {
	digits, base := text, 10
	if rest, hexadecimal := strings.CutPrefix(text, "0x"); hexadecimal {
		digits, base = rest, 16
	} else if len(text) > 1 && text[0] == '0' {
		return 0, fmt.Errorf("%q: want a number without leading zeros", text)
	}
	n, err := strconv.ParseUint(digits, base, bits)
	if err != nil || strings.ContainsAny(digits, "_+") {
		return 0, fmt.Errorf("%q: want a number of at most %d bits", text, bits)
	}
	return n, nil
}

func (q qualifiers) group(word string) (predicate, error) {
	switch {
	case word == "broadcast" && (q.protocol == "" || q.protocol == "ether"):
		return broadcast, nil
	case word == "multicast" && (q.protocol == "" || q.protocol == "ether"):
		return multicast, nil
	case word == "multicast" && q.protocol == "ip":
		return ipMulticast, nil
	case word == "multicast" && q.protocol == "ip6":
		return ip6Multicast, nil
	}
	return nil, fmt.Errorf("%s %s is not understood: want ether broadcast, or ether, ip or ip6 multicast", q.protocol, word)
}

// namedProtocols are written with a backslash.
var namedProtocols = map[string]map[string]uint64{
	"ether": {`\ip`: etherIP, `\ip6`: etherIP6, `\arp`: etherARP, `\rarp`: etherRARP},
	"ip":    {`\icmp`: protocolICMP, `\igmp`: protocolIGMP, `\tcp`: protocolTCP, `\udp`: protocolUDP},
	"ip6":   {`\tcp`: protocolTCP, `\udp`: protocolUDP},
}

// number is a primitive such as ip proto 89.
func (q qualifiers) number(id string) (predicate, error) {
	names, known := namedProtocols[q.protocol]
	if !known || q.direction != sourceOrDestination {
		return nil, fmt.Errorf("proto: want ether proto, ip proto or ip6 proto")
	}
	value, named := names[id]
	if !named {
		bits := 8
		if q.protocol == "ether" {
			bits = 16
		}
		var err error
		if value, err = unsigned(id, bits); err != nil {
			return nil, fmt.Errorf("%s proto: %w", q.protocol, err)
		}
	}
	switch q.protocol {
	case "ip":
		return ipProtocol(byte(value)), nil
	case "ip6":
		return ip6Protocol(byte(value)), nil
	}
	if value < 0x600 || value == etherATALK || value == etherAARP {
		return nil, fmt.Errorf("ether proto %s: want an EtherType of 0x600 or more, and none of AppleTalk", id)
	}
	return etherType(uint16(value)), nil
}

// match returns the predicate of one address or port with the qualifiers.
func (q qualifiers) match(id string) (predicate, error) {
	switch q.kind {
	case "port", "portrange":
		return q.ports(id)
	case "host", "":
		if q.protocol == "ether" {
			return q.ethernet(id)
		}
		return q.host(id)
	}
	return q.network(id)
}

func (q qualifiers) ports(id string) (predicate, error) {
	if !slices.Contains([]string{"", "tcp", "udp", "sctp"}, q.protocol) {
		return nil, fmt.Errorf("%s %s: want tcp, udp or sctp, or no protocol", q.protocol, q.kind)
	}
	low, high := id, id
	if q.kind == "portrange" {
		low, high, _ = strings.Cut(id, "-")
	}
	a, err := unsigned(low, 16)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.kind, id, err)
	}
	b, err := unsigned(high, 16)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.kind, id, err)
	}
	if a > b {
		return nil, fmt.Errorf("portrange %s: want the lower port first", id)
	}
	return ports(q.protocol, q.direction, uint16(a), uint16(b)), nil
}

func (q qualifiers) ethernet(id string) (predicate, error) {
	address, err := net.ParseMAC(id)
	if err != nil || len(address) != 6 || strings.Count(id, ":") != 5 {
		return nil, fmt.Errorf("ether host %s: want an address such as 02:02:00:00:00:01", id)
	}
	return ethernetHost(q.direction, address), nil
}

// host is one address.
func (q qualifiers) host(id string) (predicate, error) {
	ip := net.ParseIP(id)
	if ip == nil {
		return nil, fmt.Errorf("%q: want an IP address, such as 198.18.0.1", id)
	}
	bits := 128
	if !strings.Contains(id, ":") {
		ip, bits = ip.To4(), 32
	}
	return q.hosts(id, &net.IPNet{IP: ip, Mask: net.CIDRMask(bits, bits)})
}

// network is a prefix such as 198.18.0.0/24, or the first octets of one.
func (q qualifiers) network(id string) (predicate, error) {
	address, prefix, whole := strings.Cut(id, "/")
	octets := strings.Count(address, ".") + 1
	if !strings.Contains(address, ":") {
		if !whole {
			prefix = strconv.Itoa(8 * octets)
		}
		address += strings.Repeat(".0", max(4-octets, 0))
	} else if !whole {
		prefix = "128"
	}
	if _, err := unsigned(prefix, 8); err != nil {
		return nil, fmt.Errorf("net %s: want a prefix such as 198.18.0.0/24", id)
	}
	ip, n, err := net.ParseCIDR(address + "/" + prefix)
	if err != nil {
		return nil, fmt.Errorf("net %s: want a prefix such as 198.18.0.0/24", id)
	}
	if !n.IP.Equal(ip) {
		return nil, fmt.Errorf("net %s: bits behind the prefix are set: did you mean %s?", id, n)
	}
	if strings.Contains(address, ":") && len(n.IP) != net.IPv6len {
		return nil, fmt.Errorf("net %s: want a prefix of IPv4 or IPv6, not of one within the other", id)
	}
	return q.hosts(id, n)
}

// mask is net ADDRESS mask MASK.
func (q qualifiers) mask(address, _, text string) (predicate, error) {
	ip, mask := net.ParseIP(address).To4(), net.ParseIP(text).To4()
	if ip == nil || mask == nil {
		return nil, fmt.Errorf("net %s mask %s: want two IPv4 addresses", address, text)
	}
	n := &net.IPNet{IP: ip, Mask: net.IPMask(mask)}
	if !ip.Mask(n.Mask).Equal(ip) {
		return nil, fmt.Errorf("net %s mask %s: bits behind the mask are set", address, text)
	}
	return q.hosts(address, n)
}

func (q qualifiers) hosts(id string, n *net.IPNet) (predicate, error) {
	allowed := []string{"", "ip", "arp", "rarp"}
	if len(n.IP) == net.IPv6len {
		allowed = []string{"", "ip6"}
	}
	if !slices.Contains(allowed, q.protocol) {
		return nil, fmt.Errorf("%s host or net %s: an address goes with ip, ip6 or arp, or no protocol; write: %s and host %s", q.protocol, id, q.protocol, id)
	}
	return hosts(q.protocol, q.direction, n), nil
}
