// Package message reads and writes HTTP/1.1 messages (RFC 9112) and keeps their start line, header fields and trailer byte for byte.
// Go's own package does not: it forgets the order and case of fields.
package message

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/wording"
)

// Error is what is wrong with a message, and the status that says so to its sender.
type Error struct {
	Status int
	Text   string
}

func (e *Error) Error() string { return e.Text }

func malformed(format string, args ...any) error {
	return &Error{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// Head is the start line of a message and its field lines, without their line ends.
type Head struct {
	Start  string
	Fields []string
}

// hopByHop are the fields that concern one connection only (RFC 9110, 7.6.1), and those of a login at a proxy.
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "TE", "Transfer-Encoding", "Upgrade", "Proxy-Authorization", "Proxy-Authenticate"}

// ReadHead reads a start line and fields, of up to limit bytes. The error is io.EOF if nothing came.
func ReadHead(r *bufio.Reader, limit int) (Head, error) {
	var h Head
	left := limit
	for h.Start == "" { // empty lines before a message are skipped (RFC 9112, 2.2)
		line, err := readLine(r, &left)
		if err != nil {
			return h, err
		}
		h.Start = line
	}
	var err error
	h.Fields, err = readFields(r, &left)
	return h, err
}

// ReadTrailer reads the fields after a chunked body.
func ReadTrailer(r *bufio.Reader, limit int) ([]string, error) { return readFields(r, &limit) }

func readFields(r *bufio.Reader, left *int) (fields []string, err error) {
	for {
		line, err := readLine(r, left)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || line == "" {
			return fields, err
		}
		if err := checkField(line); err != nil {
			return nil, err
		}
		fields = append(fields, line)
	}
}

// readLine reads one line that ends with CR LF, and takes its length from what is left.
func readLine(r *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if *left -= len(part); *left < 0 {
			return "", &Error{http.StatusRequestHeaderFieldsTooLarge, "the start line and the header fields are too long together"}
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		case len(line) < 2 || line[len(line)-2] != '\r':
			return "", malformed("a line of the header ends without a carriage return")
		}
		line = line[:len(line)-2]
		for _, c := range line {
			if c == '\r' || c == 0 {
				return "", malformed("the header has a carriage return or a zero inside a line")
			}
		}
		return string(line), nil
	}
}

func checkField(line string) error {
	name, value, found := strings.Cut(line, ":")
	if !found || !isToken(name) {
		return malformed("the header line %q is no field: want a name, a colon and a value", short(line))
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return malformed("header field %s has a control character", name)
		}
	}
	return nil
}

// isToken reports whether a text is a token of RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

func short(s string) string { return wording.Shorten(s, 63) }

// Name returns the name of a field line.
func Name(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return name
}

// Values returns the values of a field, without white space around them.
func (h Head) Values(name string) []string {
	var values []string
	for _, line := range h.Fields {
		if have, value, _ := strings.Cut(line, ":"); strings.EqualFold(have, name) {
			values = append(values, strings.Trim(value, " \t"))
		}
	}
	return values
}

// list returns the elements of a field whose values are lists.
func (h Head) list(name string) []string {
	var elements []string
	for _, value := range h.Values(name) {
		for element := range strings.SplitSeq(value, ",") {
			if element = strings.Trim(element, " \t"); element != "" {
				elements = append(elements, element)
			}
		}
	}
	return elements
}

// Has reports whether a field that is a list has an element.
func (h Head) Has(name, element string) bool {
	return slices.ContainsFunc(h.list(name), func(e string) bool { return strings.EqualFold(e, element) })
}

// EndToEnd returns the head without the fields that concern one connection only. Transfer-Encoding stays: it says how the body is
// written again on the next connection.
func (h Head) EndToEnd() Head {
	drop := slices.Concat(hopByHop, h.list("Connection"))
	kept := Head{Start: h.Start}
	for _, line := range h.Fields {
		same := func(name string) bool { return strings.EqualFold(name, Name(line)) }
		// A sender must not name these in Connection (RFC 9110, 7.6.1): without them the body's length would be unknown.
		framing := same("Transfer-Encoding") || same("Content-Length") || same("Host")
		if framing || !slices.ContainsFunc(drop, same) {
			kept.Fields = append(kept.Fields, line)
		}
	}
	return kept
}

// Without returns the head without a field.
func (h Head) Without(name string) Head {
	kept := Head{Start: h.Start}
	for _, line := range h.Fields {
		if !strings.EqualFold(name, Name(line)) {
			kept.Fields = append(kept.Fields, line)
		}
	}
	return kept
}

// Append adds the head as it is on the wire, with the empty line at its end.
func (h Head) Append(dst []byte) []byte {
	dst = append(append(dst, h.Start...), "\r\n"...)
	return AppendFields(dst, h.Fields)
}

// AppendFields adds field lines, and the empty line at their end.
func AppendFields(dst []byte, fields []string) []byte {
	for _, line := range fields {
		dst = append(append(dst, line...), "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// Request is what a request's start line says.
type Request struct {
	Method string
	// Authority is host:port of the service, the port with its default.
	Authority string
	// Host is the authority as the client wrote it.
	Host string
	// Target is path and query, as a service expects them.
	Target string
	// Minor is the minor version of HTTP/1.
	Minor int
}

// Safe reports whether repeating the request changes nothing (RFC 9110, 9.2.1).
func (r Request) Safe() bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// ParseRequest reads the start line of a request to a proxy.
func ParseRequest(start string) (r Request, err error) {
	parts := strings.Split(start, " ")
	if len(parts) != 3 || !isToken(parts[0]) || parts[1] == "" {
		return r, malformed("the first line %q is no request: want a method, a target and HTTP/1.1", short(start))
	}
	r.Method = parts[0]
	switch parts[2] {
	case "HTTP/1.1":
		r.Minor = 1
	case "HTTP/1.0":
	default:
		return r, &Error{http.StatusHTTPVersionNotSupported, fmt.Sprintf("the version is %q: want HTTP/1.1 or HTTP/1.0", short(parts[2]))}
	}
	if r.Method == http.MethodConnect {
		return r, &Error{http.StatusNotImplemented, "CONNECT opens a tunnel (https), and the proxy stores and carries whole requests. " +
			"Use an http URL"}
	}
	const scheme = "http://"
	target := parts[1]
	if len(target) < len(scheme) || !strings.EqualFold(target[:len(scheme)], scheme) {
		return r, malformed("the target is %q: want an absolute http URL, as clients send it to their HTTP proxy (http_proxy)", short(target))
	}
	return r, r.parseTarget(target[len(scheme):])
}

// parseTarget splits an absolute URL after its scheme.
func (r *Request) parseTarget(rest string) error {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	r.Host, r.Target = rest[:end], rest[end:]
	for i := range len(rest) {
		if c := rest[i]; c <= ' ' || c == 0x7f {
			return malformed("the target has a control character")
		}
	}
	switch {
	case strings.Contains(r.Target, "#"):
		return malformed("the target has a fragment (#): want a URL without one")
	case strings.Contains(r.Host, "@"):
		return malformed("the target has a user name: want it in the field Authorization")
	case r.Target == "" && r.Method == http.MethodOptions:
		r.Target = "*"
	case !strings.HasPrefix(r.Target, "/"):
		r.Target = "/" + r.Target
	}
	return r.setAuthority()
}

func (r *Request) setAuthority() error {
	host, port := r.Host, "80"
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if host, port = host[:i], host[i+1:]; port == "" {
			port = "80"
		}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if host == "" || err != nil || number == 0 || strings.Contains(strings.Trim(host, "[]"), ":") != strings.HasPrefix(host, "[") {
		return malformed("the target's host is %q: want a name or an address, and a port if it is not 80", short(r.Host))
	}
	r.Authority = host + ":" + port
	return nil
}

// ForService returns the head that a service expects: with path and query for target, the host in Host, and an end of the connection.
func (r Request) ForService(h Head) Head {
	out := Head{Start: r.Method + " " + r.Target + " HTTP/1.1"}
	host := "Host: " + r.Host
	if hosts := h.Values("Host"); len(hosts) == 1 && strings.EqualFold(hosts[0], r.Host) {
		host = ""
	}
	if host != "" { // the target's host replaces another one (RFC 9112, 3.2.2)
		h = h.Without("Host")
		out.Fields = append(out.Fields, host)
	}
	out.Fields = append(append(out.Fields, h.Fields...), "Connection: close")
	return out
}

// StatusOf reads the status of a response's start line.
func StatusOf(start string) (int, error) {
	version, rest, _ := strings.Cut(start, " ")
	digits, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(digits)
	if !strings.HasPrefix(version, "HTTP/1.") || len(version) != len("HTTP/1.1") || err != nil || len(digits) != 3 || status < 100 {
		return 0, malformed("the first line %q is no response: want HTTP/1.1 and a status", short(start))
	}
	return status, nil
}
