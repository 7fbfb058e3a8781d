package routerprocess

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/routing"
)

// request of the control socket.
type request struct {
	Do string `cbor:"1,keyasint"`
	// ID of the instance.
	ID uint64 `cbor:"2,keyasint,omitempty"`
	// Config, State and Absent are for adopt, which comes with the namespace's descriptor.
	Config *routing.Config `cbor:"3,keyasint,omitempty"`
	State  *routing.State  `cbor:"4,keyasint,omitempty"`
	Absent time.Duration   `cbor:"5,keyasint,omitempty"`
	// Interface and Allowed are for transmit.
	Interface int  `cbor:"6,keyasint,omitempty"`
	Allowed   bool `cbor:"7,keyasint,omitempty"`
}

// The requests.
const (
	doAdopt    = "adopt"
	doState    = "state"
	doLeave    = "leave"
	doStop     = "stop"
	doTransmit = "transmit"
)

// answer to a request.
type answer struct {
	Error string        `cbor:"1,keyasint,omitempty"`
	State routing.State `cbor:"2,keyasint,omitempty"`
}

// maxPayload of a packet in bytes: the tables of thousands of nodes.
const maxPayload = 1 << 28

// channel is one end of a stream socket, which carries packets: four bytes with a length, and as many more. A
// descriptor may come with the length.
type channel struct {
	conn *net.UnixConn
	in   []byte
}

func openChannel(fd uintptr, name string) (*channel, error) {
	conn, err := holder.Conn(os.NewFile(fd, name))
	if err != nil {
		return nil, err
	}
	return &channel{conn: conn}, nil
}

// send sends a packet, with a descriptor unless that is negative.
func (c *channel) send(payload []byte, fd int) error {
	var header [4]byte
	binary.LittleEndian.PutUint32(header[:], uint32(len(payload))) //nolint:gosec // within maxPayload
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	if _, _, err := c.conn.WriteMsgUnix(header[:], rights, nil); err != nil {
		return err
	}
	if len(payload) == 0 {
		return nil
	}
	_, err := c.conn.Write(payload)
	return err
}

// receive returns a packet, which is valid until the next, and its descriptor or -1.
func (c *channel) receive() (payload []byte, fd int, err error) {
	var header [4]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.conn.ReadMsgUnix(header[:], oob)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, -1, err
	}
	if fd, err = holder.Descriptor(oob[:oobn]); err != nil {
		return nil, -1, err
	}
	if payload, err = c.rest(header[:], n); err != nil && fd >= 0 {
		return nil, -1, errors.Join(err, unix.Close(fd))
	}
	return payload, fd, err
}

// rest reads the rest of a packet, of whose header n bytes have been read.
func (c *channel) rest(header []byte, n int) ([]byte, error) {
	if _, err := io.ReadFull(c.conn, header[n:]); err != nil {
		return nil, err
	}
	length := int(binary.LittleEndian.Uint32(header))
	if length > maxPayload {
		return nil, fmt.Errorf("a packet of %d bytes: want %d at most", length, maxPayload)
	}
	if cap(c.in) < length {
		c.in = make([]byte, length+length/4)
	}
	c.in = c.in[:length]
	_, err := io.ReadFull(c.conn, c.in)
	return c.in, err
}

// report is one instance's answer to a request for reports.
type report struct {
	id       uint64
	process  int
	trouble  []byte
	counters []routing.Counters
	// changed reports whether the routes have changed since the last report; only then they are included.
	changed bool
	routes  []byte
}

// appendReport appends a report, with routes if the report says that they have changed.
func appendReport(to []byte, r *report, routes []olsr.Route) []byte {
	to = binary.AppendUvarint(to, r.id)
	to = binary.AppendUvarint(to, uint64(r.process)) //nolint:gosec // process ids are positive
	to = binary.AppendUvarint(to, uint64(len(r.trouble)))
	to = append(to, r.trouble...)
	to = binary.AppendUvarint(to, uint64(len(r.counters)))
	for i := range r.counters {
		c := &r.counters[i]
		for _, v := range [...]uint64{c.PacketsSent, c.BytesSent, c.PacketsReceived, c.BytesReceived, c.SendErrors, c.ReceiveDrops} {
			to = binary.AppendUvarint(to, v)
		}
	}
	if !r.changed {
		return append(to, 0)
	}
	return appendRoutes(append(to, 1), routes)
}

// appendRoutes appends routes after their number of bytes.
func appendRoutes(to []byte, routes []olsr.Route) []byte {
	begin := len(to)
	to = append(to, 0, 0, 0, 0)
	for i := range routes {
		to = appendRoute(to, &routes[i])
	}
	binary.LittleEndian.PutUint32(to[begin:], uint32(len(to)-begin-4)) //nolint:gosec // within maxPayload
	return to
}

func appendRoute(to []byte, r *olsr.Route) []byte {
	to = appendAddress(to, r.Destination.Addr())
	to = append(to, byte(r.Destination.Bits())) //nolint:gosec // 0 to 128
	to = appendAddress(to, r.NextHop)
	to = binary.AppendUvarint(to, uint64(r.Interface)) //nolint:gosec // an index
	to = binary.AppendUvarint(to, uint64(r.Topology))  //nolint:gosec // a small number
	to = binary.AppendUvarint(to, uint64(r.Hops))      //nolint:gosec // not negative
	return binary.AppendUvarint(to, uint64(r.Metric))
}

// appendAddress appends an address after its length, 4 or 16; 0 is the zero value.
func appendAddress(to []byte, a netip.Addr) []byte {
	to = append(to, byte(a.BitLen()/8)) //nolint:gosec // 0, 4 or 16
	if a.Is4() {
		four := a.As4()
		return append(to, four[:]...)
	}
	if a.IsValid() {
		sixteen := a.As16()
		return append(to, sixteen[:]...)
	}
	return to
}

var errTruncated = errors.New("it ends before its end, or has a number too large")

// reader reads what the functions above have written. After an error it returns zero values.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.err, r.rest = errTruncated, nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if b := r.bytes(1); len(b) > 0 {
		return b[0]
	}
	return 0
}

// number reads a number up to most.
func (r *reader) number(most uint64) uint64 {
	n, length := binary.Uvarint(r.rest)
	if length <= 0 || n > most {
		r.err, r.rest = errTruncated, nil
		return 0
	}
	r.rest = r.rest[length:]
	return n
}

func (r *reader) address() (a netip.Addr) {
	length := r.byte()
	if length != 0 && length != 4 && length != 16 {
		r.err, r.rest = fmt.Errorf("an address of %d bytes: want 0, 4 or 16", length), nil
		return a
	}
	a, _ = netip.AddrFromSlice(r.bytes(uint64(length)))
	return a
}

const anyNumber = 1<<64 - 1

// report reads the next report into to, whose slices it reuses. Byte slices refer to the reader's memory.
func (r *reader) report(to *report) error {
	to.id = r.number(anyNumber)
	to.process = int(r.number(1 << 31)) //nolint:gosec // as bounded
	to.trouble = r.bytes(r.number(maxPayload))
	count := r.number(1 << 16)
	to.counters = to.counters[:0]
	for range count {
		var v [6]uint64
		for k := range v {
			v[k] = r.number(anyNumber)
		}
		if r.err != nil {
			return r.err
		}
		to.counters = append(to.counters, routing.Counters{PacketsSent: v[0], BytesSent: v[1], PacketsReceived: v[2], BytesReceived: v[3],
			SendErrors: v[4], ReceiveDrops: v[5]})
	}
	to.changed, to.routes = r.byte() != 0, nil
	if to.changed {
		if length := r.bytes(4); len(length) == 4 {
			to.routes = r.bytes(uint64(binary.LittleEndian.Uint32(length)))
		}
	}
	return r.err
}

// routes appends the routes that appendRoute has written.
func (r *reader) routes(to []olsr.Route) ([]olsr.Route, error) {
	for len(r.rest) > 0 {
		a := r.address()
		bits := int(r.byte())
		n := olsr.Route{Destination: netip.PrefixFrom(a, bits), NextHop: r.address(), Interface: int(r.number(1 << 16)), //nolint:gosec // as bounded
			Topology: int(r.number(olsr.MaxTopologies)),                           //nolint:gosec // as bounded
			Hops:     int(r.number(1 << 31)), Metric: uint32(r.number(1<<32 - 1))} //nolint:gosec // as bounded
		if r.err != nil {
			return to, r.err
		}
		to = append(to, n)
	}
	return to, r.err
}
