package podnet

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// TableName of the nftables table (family inet) in a pod's namespace.
const TableName = "vignette"

// Metrics ports of apps that Scrapers may read through eth0.
const metricsFirst, metricsLast = 9400, 9499

// Allowed is the traffic that a pod may have without a radio.
type Allowed struct {
	// Servers are the archive's addresses: the Service's and its endpoints'.
	Servers []netip.AddrPort
	// DNS servers of the cluster and their ports: the Service's and its endpoints'.
	DNS []netip.AddrPort
	// Hosts are the addresses of the Kubernetes node, from which kubelet probes.
	Hosts []netip.Addr
	// Scrapers may read the metrics of apps, which require no token.
	Scrapers []netip.Addr
	// AllScrapers allows all scrapers, where other rules restrict them, as radiod's do for a guest.
	AllScrapers bool
	// Ports are TCP ports that anybody may reach.
	Ports []uint16
}

// Normalise sorts everything and removes duplicates, so that equal sets are equal values.
func (a Allowed) Normalise() Allowed {
	a.Servers = slices.Compact(slices.SortedFunc(slices.Values(a.Servers), netip.AddrPort.Compare))
	a.DNS = slices.Compact(slices.SortedFunc(slices.Values(a.DNS), netip.AddrPort.Compare))
	a.Hosts = slices.Compact(slices.SortedFunc(slices.Values(a.Hosts), netip.Addr.Compare))
	a.Scrapers = slices.Compact(slices.SortedFunc(slices.Values(a.Scrapers), netip.Addr.Compare))
	a.Ports = slices.Compact(slices.Sorted(slices.Values(a.Ports)))
	return a
}

// Equal compares normalised sets.
func (a Allowed) Equal(b Allowed) bool {
	return slices.Equal(a.Servers, b.Servers) && slices.Equal(a.DNS, b.DNS) && slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.Scrapers, b.Scrapers) &&
		a.AllScrapers == b.AllScrapers && slices.Equal(a.Ports, b.Ports)
}

// chain is a chain of the table with its rules. Base chains drop what no rule accepts.
type chain struct {
	name     string
	hook     *nftables.ChainHook // nil: only reached by goto
	priority *nftables.ChainPriority
	policy   nftables.ChainPolicy
	rules    []rule
}

// rule is a list of matches, all of which must hold, and its verdict.
type rule struct {
	matches []match
	verdict string // accept, notrack or goto CHAIN
}

// match is one condition, as nft(8) writes it and as the kernel takes it.
type match struct {
	text        string
	expressions []expr.Any
}

const fromRadio = "from_radio"

// chains returns the rules for a pod whose radios have the given interface indexes. A tenant may choose an
// interface's name but not its index.
func chains(radios []int, a Allowed) []chain {
	trackIn := chain{name: "raw_in", hook: nftables.ChainHookPrerouting, priority: nftables.ChainPriorityRaw, policy: nftables.ChainPolicyAccept}
	trackOut := chain{name: "raw_out", hook: nftables.ChainHookOutput, priority: nftables.ChainPriorityRaw, policy: nftables.ChainPolicyAccept}
	in := chain{name: "in", hook: nftables.ChainHookInput, priority: nftables.ChainPriorityFilter, policy: nftables.ChainPolicyDrop}
	out := chain{name: "out", hook: nftables.ChainHookOutput, priority: nftables.ChainPriorityFilter, policy: nftables.ChainPolicyDrop}
	forward := chain{name: "forward", hook: nftables.ChainHookForward, priority: nftables.ChainPriorityFilter, policy: nftables.ChainPolicyDrop}
	onwards := chain{name: fromRadio}
	for _, index := range radios {
		// Connection tracking would cost time for every frame, and overflow.
		trackIn.add("notrack", incoming(index))
		trackOut.add("notrack", outgoing(index))
		in.add("accept", incoming(index))
		out.add("accept", outgoing(index))
		forward.add("goto "+fromRadio, incoming(index))
		onwards.add("accept", outgoing(index))
	}
	in.add("accept", incoming(loopbackIndex))
	out.add("accept", outgoing(loopbackIndex))
	in.addEth0Incoming(a)
	out.addEth0Outgoing(a)
	return []chain{trackIn, trackOut, in, out, onwards, forward}
}

const (
	toGuest, fromGuest = "to_guest", "from_guest"
	// sshPort of guests, which users reach through KubeVirt.
	sshPort = 22
	// KubeVirt's launcher is the guest's DHCP server (RFC 2131, RFC 8415).
	dhcpServer, dhcpClient, dhcp6Server, dhcp6Client = 67, 68, 547, 546
)

// launcherChains returns the rules for a virtual machine's launcher. The guest is behind an interface that
// KubeVirt makes later, and its traffic is forwarded, with other addresses, to and from eth0. The guest may
// have forwarded what a pod may send and receive. Frames of its radios never reach the rules.
func launcherChains(eth0 int, a Allowed) []chain {
	in := chain{name: "in", hook: nftables.ChainHookInput, priority: nftables.ChainPriorityFilter, policy: nftables.ChainPolicyDrop}
	out := chain{name: "out", hook: nftables.ChainHookOutput, priority: nftables.ChainPriorityFilter, policy: nftables.ChainPolicyDrop}
	forward := chain{name: "forward", hook: nftables.ChainHookForward, priority: nftables.ChainPriorityFilter, policy: nftables.ChainPolicyDrop}
	to, from := chain{name: toGuest}, chain{name: fromGuest}
	in.add("accept", incoming(loopbackIndex))
	out.add("accept", outgoing(loopbackIndex))
	for _, port := range []uint16{dhcpServer, dhcp6Server} {
		in.add("accept", append([]match{not(incoming(eth0))}, ports("udp", port, port)...)...)
	}
	for _, port := range []uint16{dhcpClient, dhcp6Client} {
		out.add("accept", append([]match{not(outgoing(eth0))}, ports("udp", port, port)...)...)
	}
	in.addEth0Incoming(a)
	out.addEth0Outgoing(a)
	to.addEth0Incoming(a)
	to.add("accept", ports("tcp", sshPort, sshPort)...)
	from.addEth0Outgoing(a)
	forward.add("goto "+toGuest, incoming(eth0))
	forward.add("goto "+fromGuest, outgoing(eth0))
	return []chain{in, out, to, from, forward}
}

// not negates a match of one comparison.
func not(m match) match {
	last := len(m.expressions) - 1
	compared := *m.expressions[last].(*expr.Cmp) //nolint:forcetypeassert // of incoming and outgoing
	compared.Op = expr.CmpOpNeq
	word, value, _ := strings.Cut(m.text, " ")
	return match{word + " != " + value, append(slices.Clone(m.expressions[:last]), &compared)}
}

func (c *chain) add(verdict string, matches ...match) {
	c.rules = append(c.rules, rule{matches, verdict})
}

// loopbackIndex is the same in every network namespace.
const loopbackIndex = 1

func (c *chain) addEth0Incoming(a Allowed) {
	c.add("accept", established())
	for _, host := range a.Hosts {
		c.add("accept", address("saddr", host)...)
	}
	for _, scraper := range a.Scrapers {
		c.add("accept", append(address("saddr", scraper), ports("tcp", metricsFirst, metricsLast)...)...)
	}
	if a.AllScrapers {
		c.add("accept", ports("tcp", metricsFirst, metricsLast)...)
	}
	for _, port := range a.Ports {
		c.add("accept", ports("tcp", port, port)...)
	}
	c.add("accept", neighbourDiscovery()...)
}

func (c *chain) addEth0Outgoing(a Allowed) {
	c.add("accept", established())
	for _, server := range a.DNS {
		for _, protocol := range []string{"udp", "tcp"} {
			c.add("accept", append(address("daddr", server.Addr()), ports(protocol, server.Port(), server.Port())...)...)
		}
	}
	for _, server := range a.Servers {
		c.add("accept", append(address("daddr", server.Addr()), ports("tcp", server.Port(), server.Port())...)...)
	}
	c.add("accept", neighbourDiscovery()...)
}

func incoming(index int) match {
	return match{fmt.Sprintf("iif %d", index), meta(expr.MetaKeyIIF, binaryutil.NativeEndian.PutUint32(uint32(index)))}
}

func outgoing(index int) match {
	return match{fmt.Sprintf("oif %d", index), meta(expr.MetaKeyOIF, binaryutil.NativeEndian.PutUint32(uint32(index)))}
}

func meta(key expr.MetaKey, value []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, equals(value)}
}

func equals(value []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value} }

func established() match {
	states := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	return match{"ct state established,related", []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: states, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}}
}

// address matches saddr or daddr of either family.
func address(which string, a netip.Addr) []match {
	a = a.Unmap()
	family, word, offset := byte(unix.NFPROTO_IPV4), "ip", uint32(12)
	if a.Is6() {
		family, word, offset = unix.NFPROTO_IPV6, "ip6", 8
	}
	length := uint32(len(a.AsSlice()))
	if which == "daddr" {
		offset += length
	}
	expressions := append(meta(expr.MetaKeyNFPROTO, []byte{family}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length}, equals(a.AsSlice()))
	return []match{{fmt.Sprintf("%s %s %v", word, which, a), expressions}}
}

// ports matches a range of destination ports.
func ports(protocol string, first, last uint16) []match {
	number := byte(unix.IPPROTO_TCP)
	if protocol == "udp" {
		number = unix.IPPROTO_UDP
	}
	text := fmt.Sprintf("%s dport %d", protocol, first)
	if last != first {
		text += fmt.Sprintf("-%d", last)
	}
	expressions := append(meta(expr.MetaKeyL4PROTO, []byte{number}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: binaryutil.BigEndian.PutUint16(first), ToData: binaryutil.BigEndian.PutUint16(last)})
	return []match{{text, expressions}}
}

// neighbourDiscovery matches router and neighbour solicitations and advertisements and redirects (RFC 4861).
// Without them IPv6 clusters could not reach the pod.
func neighbourDiscovery() []match {
	const first, last = 133, 137
	expressions := append(meta(expr.MetaKeyL4PROTO, []byte{unix.IPPROTO_ICMPV6}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: []byte{first}, ToData: []byte{last}})
	return []match{{fmt.Sprintf("icmpv6 type %d-%d", first, last), expressions}}
}

// ApplyRules replaces the rules in the pod's namespace in one transaction. Without radios it does nothing.
func ApplyRules(namespace *os.File, radios []int, a Allowed) error {
	if len(radios) == 0 {
		return nil
	}
	return load(namespace, chains(radios, a))
}

// ApplyLauncherRules replaces the rules of a virtual machine's launcher, whose eth0 has that index.
func ApplyLauncherRules(namespace *os.File, eth0 int, a Allowed) error {
	return load(namespace, launcherChains(eth0, a))
}

func load(namespace *os.File, chains []chain) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(namespace.Fd())))
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}
	c.AddTable(table) // so that there is one to delete
	c.DelTable(table)
	c.AddTable(table)
	for _, ch := range chains {
		added := &nftables.Chain{Name: ch.name, Table: table}
		if ch.hook != nil {
			added.Type, added.Hooknum, added.Priority, added.Policy = nftables.ChainTypeFilter, ch.hook, ch.priority, &ch.policy
		}
		c.AddChain(added)
		for _, r := range ch.rules {
			c.AddRule(&nftables.Rule{Table: table, Chain: added, Exprs: r.expressions()})
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables rules for eth0: %w", err)
	}
	return nil
}

func (r rule) expressions() []expr.Any {
	var all []expr.Any
	for _, m := range r.matches {
		all = append(all, m.expressions...)
	}
	if target, found := strings.CutPrefix(r.verdict, "goto "); found {
		return append(all, &expr.Verdict{Kind: expr.VerdictGoto, Chain: target})
	}
	if r.verdict == "notrack" {
		return append(all, &expr.Notrack{})
	}
	return append(all, &expr.Verdict{Kind: expr.VerdictAccept})
}
