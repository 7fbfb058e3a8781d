package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	tcpcoder "github.com/plgd-dev/go-coap/v3/tcp/coder"
	udpcoder "github.com/plgd-dev/go-coap/v3/udp/coder"
)

const (
	// maxOptions of a received message. A path has a few, and each costs memory.
	maxOptions = 64
	// maxTokenBytes is that of RFC 7252.
	maxTokenBytes = 8
	// maxSegmentBytes of a path or query is that of RFC 7252.
	maxSegmentBytes = 255
	// maxHeaderBytes is room for header, token and options beside a payload. Paths of the traffic program are short.
	maxHeaderBytes = 256

	payloadMarker = 0xff

	// An option that the library does not know: RFC 9175.
	optionRequestTag = message.OptionID(292)
)

// errMalformed is a message format error (RFC 7252, section 3).
var errMalformed = errors.New("malformed message")

// parse reads a datagram. The message uses its memory.
func parse(datagram []byte) (message.Message, error) {
	m := message.Message{}
	if len(datagram) < 4 || datagram[0]>>6 != 1 {
		return m, errMalformed
	}
	m.Type = message.Type(datagram[0] >> 4 & 3)
	m.Code = codes.Code(datagram[1])
	m.MessageID = int32(binary.BigEndian.Uint16(datagram[2:]))
	tokenBytes, rest := int(datagram[0]&0xf), datagram[4:]
	if tokenBytes > maxTokenBytes || tokenBytes > len(rest) {
		return m, errMalformed
	}
	m.Token = rest[:tokenBytes]
	if m.Code == codes.Empty && len(rest) > 0 {
		return m, errMalformed
	}
	return m, parseOptions(&m, rest[tokenBytes:])
}

// parseOptions reads options and payload. Unlike the library's coders it keeps options of a wrong length, so that critical ones are refused.
func parseOptions(m *message.Message, rest []byte) error {
	m.Options = make(message.Options, 0, maxOptions)
	n, err := m.Options.Unmarshal(rest, nil)
	if err != nil {
		return errMalformed
	}
	m.Options = slices.Clone(m.Options)
	m.Payload = rest[n:]
	if len(m.Payload) == 0 && n > 0 && rest[n-1] == payloadMarker && markerEnds(rest, m.Options) {
		return errMalformed
	}
	return nil
}

// markerEnds reports whether the last byte is a payload marker, and not the end of the last option's value.
func markerEnds(rest []byte, options message.Options) bool {
	length, _ := options.Marshal(nil) // the error says that nil is too small
	return length < len(rest)
}

// format returns a message as a datagram.
func format(m message.Message) ([]byte, error) { return encode(m, udpcoder.DefaultCoder) }

// formatStream returns a message as on a TCP connection (RFC 8323, section 3.2).
func formatStream(m message.Message) ([]byte, error) { return encode(m, tcpcoder.DefaultCoder) }

type coder interface {
	Size(m message.Message) (int, error)
	Encode(m message.Message, b []byte) (int, error)
}

func encode(m message.Message, c coder) ([]byte, error) {
	m.Options = sorted(m.Options)
	size, err := c.Size(m)
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	_, err = c.Encode(m, b)
	return b, err
}

func sorted(options message.Options) message.Options {
	sorted := slices.Clone(options)
	slices.SortStableFunc(sorted, func(a, b message.Option) int { return int(a.ID) - int(b.ID) })
	return sorted
}

func isRequest(c codes.Code) bool  { return c >= codes.GET && c < 32 }
func isResponse(c codes.Code) bool { return c >= 64 && c < 192 }

// class is the first digit of a code, such as 4 of 4.04.
func class(c codes.Code) int { return int(c) >> 5 }

// dotted writes a code as the standard does, such as 4.04.
func dotted(c codes.Code) string { return fmt.Sprintf("%d.%02d", class(c), c&31) }

func add(m *message.Message, id message.OptionID, value []byte) {
	m.Options = append(m.Options, message.Option{ID: id, Value: value})
}

func addUint(m *message.Message, id message.OptionID, value uint32) {
	b := binary.BigEndian.AppendUint32(nil, value)
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	add(m, id, b)
}

// option returns the first value of an option.
func option(m message.Message, id message.OptionID) ([]byte, bool) {
	for _, o := range m.Options {
		if o.ID == id {
			return o.Value, true
		}
	}
	return nil, false
}

// uintOption returns an option's number; an elective one of a wrong length counts as absent.
func uintOption(m message.Message, id message.OptionID) (uint32, bool) {
	value, ok := option(m, id)
	if !ok || len(value) > 4 || !fitting(message.Option{ID: id, Value: value}) {
		return 0, false
	}
	n := uint32(0)
	for _, b := range value {
		n = n<<8 | uint32(b)
	}
	return n, true
}

// fitting reports whether an option's value has a length that its standard allows.
func fitting(o message.Option) bool {
	limits, known := message.CoapOptionDefs[o.ID]
	return !known || uint32(len(o.Value)) >= limits.MinLen && uint32(len(o.Value)) <= limits.MaxLen
}

// understood are the critical options of requests, and whether they may be repeated.
var understood = map[message.OptionID]bool{
	message.URIHost: false, message.URIPort: false, message.URIPath: true, message.URIQuery: true,
	message.Accept: false, message.Block1: false, message.Block2: false,
}

// badOption returns a critical option that is not understood, repeated, or too long (RFC 7252, section 5.4).
func badOption(m message.Message) (message.OptionID, bool) {
	for i, o := range m.Options {
		repeatable, known := understood[o.ID]
		repeated := i > 0 && m.Options[i-1].ID == o.ID && !repeatable
		if critical := o.ID&1 == 1; critical && (!known || repeated || !fitting(o)) {
			return o.ID, true
		}
	}
	return 0, false
}

// block is a value of the options Block1 and Block2 (RFC 7959).
type block struct {
	number uint32
	more   bool
	// exponent of the size, less 4. The value 7 is that of BERT over TCP (RFC 8323, section 6).
	exponent uint8
}

const bert = 7

func (b block) unit() int {
	if b.exponent == bert {
		return 1024
	}
	return 16 << b.exponent
}

func (b block) offset() int { return int(b.number) * b.unit() }

func addBlock(m *message.Message, id message.OptionID, b block) {
	value := b.number<<4 | uint32(b.exponent)
	if b.more {
		value |= 8
	}
	addUint(m, id, value)
}

func blockOption(m message.Message, id message.OptionID) (block, bool) {
	value, ok := uintOption(m, id)
	return block{number: value >> 4, more: value&8 != 0, exponent: uint8(value & 7)}, ok
}

// addTarget adds a path with its query.
func addTarget(m *message.Message, target string) error {
	path, query, hasQuery := strings.Cut(target, "?")
	path, found := strings.CutPrefix(path, "/")
	if !found {
		return fmt.Errorf("path %q: want a slash at its beginning", target)
	}
	if path != "" {
		for segment := range strings.SplitSeq(path, "/") {
			if err := addSegment(m, message.URIPath, segment, url.PathUnescape); err != nil {
				return err
			}
		}
	}
	if hasQuery {
		for argument := range strings.SplitSeq(query, "&") {
			if err := addSegment(m, message.URIQuery, argument, url.PathUnescape); err != nil {
				return err
			}
		}
	}
	return nil
}

func addSegment(m *message.Message, id message.OptionID, text string, unescape func(string) (string, error)) error {
	plain, err := unescape(text)
	if err != nil {
		return fmt.Errorf("%q in a path: want percent-encoding as in URLs", text)
	}
	if len(plain) > maxSegmentBytes {
		return fmt.Errorf("a part of a path or query has %d bytes: CoAP carries up to %d", len(plain), maxSegmentBytes)
	}
	add(m, id, []byte(plain))
	return nil
}

// target is the reverse of addTarget.
func target(m message.Message) string {
	var path, query strings.Builder
	for _, o := range m.Options {
		switch o.ID {
		case message.URIPath:
			path.WriteString("/" + url.PathEscape(string(o.Value)))
		case message.URIQuery:
			separator := "&"
			if query.Len() == 0 {
				separator = "?"
			}
			query.WriteString(separator + strings.ReplaceAll(url.PathEscape(string(o.Value)), "&", "%26"))
		}
	}
	if path.Len() == 0 {
		path.WriteByte('/')
	}
	return path.String() + query.String()
}
