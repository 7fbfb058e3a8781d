// Package frame is what the two proxies of a pair say to each other, over any protocol between them. A frame is a kind, the request's id and
// more by kind; the length is the protocol's business.
//
//	request  deadline (8 bytes, milliseconds since the Unix epoch), acknowledged (1 byte, and 16 for each id), compression (1), content
//	query    deadline, acknowledged: asks for the response to a request that the far proxy may have
//	response compression, content
//	failure  length of a reason (1), reason, compression, content: a response that the far proxy made itself
//	unknown  nothing: the far proxy has no such request, and wants all of it
//	busy     a text for people: the far proxy cannot take the request now
package frame

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"vignette.dev/vignette/internal/gz"
	"vignette.dev/vignette/internal/proxyconfig"
)

// Kind of a frame. The numbers are those of this version of the format.
type Kind byte

// Kinds.
const (
	Request  Kind = 0x21
	Query    Kind = 0x22
	Response Kind = 0x23
	Failure  Kind = 0x24
	Unknown  Kind = 0x25
	Busy     Kind = 0x26
)

// ID identifies a request in the experiment.
type ID [16]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String wrote.
func ParseID(text string) (id ID, err error) {
	if hex.DecodedLen(len(text)) != len(id) {
		return id, fmt.Errorf("id %q has not %d bytes", text, len(id))
	}
	_, err = hex.Decode(id[:], []byte(text))
	return id, err
}

// Frame is one message between the proxies.
type Frame struct {
	Kind Kind
	ID   ID
	// Deadline of a request or query, in whole milliseconds. After it the request must not be run.
	Deadline time.Time
	// Acknowledged are requests whose responses the near proxy has on its disk, MaxAcknowledged at most. Requests and queries have them.
	Acknowledged []ID
	// Content of a request, response or failure; see WriteContent.
	Content []byte
	// Reason of a failure: a word such as timeout.
	Reason string
	// Text of Busy, for people.
	Text string
}

// MaxAcknowledged is the most acknowledged requests in one frame.
const MaxAcknowledged = 16

// errFrame is the error of a frame that no proxy of this version has written.
var errFrame = errors.New("the frame is malformed, or of another version of the proxy")

// Append adds the frame to dst. Content is compressed if that makes it smaller.
func (f Frame) Append(dst []byte, compression string) []byte {
	dst = append(append(dst, byte(f.Kind)), f.ID[:]...)
	switch f.Kind {
	case Request, Query:
		dst = binary.BigEndian.AppendUint64(dst, uint64(f.Deadline.UnixMilli())) //nolint:gosec // after 1970
		dst = append(dst, byte(len(f.Acknowledged)))
		for _, id := range f.Acknowledged {
			dst = append(dst, id[:]...)
		}
		if f.Kind == Query {
			return dst
		}
	case Unknown:
		return dst
	case Busy:
		return append(dst, f.Text...)
	case Failure:
		dst = append(append(dst, byte(len(f.Reason))), f.Reason...)
	}
	return appendCompressed(dst, f.Content, compression)
}

// Parse reads a frame, whose content may have up to limit bytes. The frame's content may share memory with b.
func Parse(b []byte, limit int) (f Frame, err error) {
	if len(b) < 1+len(f.ID) {
		return f, errFrame
	}
	f.Kind = Kind(b[0])
	copy(f.ID[:], b[1:])
	b = b[1+len(f.ID):]
	switch f.Kind {
	case Request, Query:
		if b, err = f.parseTerms(b); err != nil {
			return f, err
		}
	case Failure:
		if len(b) < 1 || len(b) < 1+int(b[0]) {
			return f, errFrame
		}
		end := 1 + int(b[0])
		f.Reason, b = string(b[1:end]), b[end:]
	case Busy:
		f.Text = string(b)
		return f, nil
	case Response, Unknown:
	default:
		return f, errFrame
	}
	if f.Kind == Query || f.Kind == Unknown {
		if len(b) > 0 {
			return f, errFrame
		}
		return f, nil
	}
	f.Content, err = decompress(b, limit)
	return f, err
}

// parseTerms reads deadline and acknowledgements, and returns what follows.
func (f *Frame) parseTerms(b []byte) (rest []byte, err error) {
	if len(b) < 9 {
		return nil, errFrame
	}
	milliseconds, count := binary.BigEndian.Uint64(b), int(b[8])
	if b = b[9:]; milliseconds>>56 != 0 || count > MaxAcknowledged || len(b) < count*len(ID{}) {
		return nil, errFrame
	}
	f.Deadline = time.UnixMilli(int64(milliseconds)) //nolint:gosec // 56 bits
	for range count {
		f.Acknowledged = append(f.Acknowledged, ID(b[:len(ID{})]))
		b = b[len(ID{}):]
	}
	return b, nil
}

// Compressions as a frame has them.
const (
	none byte = iota
	gzipped
	zstandard
)

var (
	zstdWriters = sync.Pool{New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constant
		}
		return w
	}}
	zstdReaders = sync.Pool{New: func() any {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err)
		}
		return r
	}}
)

// maxWindow bounds what a zstd stream may ask for.
const maxWindow = 64 << 20

func appendCompressed(dst, content []byte, compression string) []byte {
	begin := len(dst)
	switch compression {
	case proxyconfig.CompressionGzip:
		dst = gz.Append(append(dst, gzipped), content)
	case proxyconfig.CompressionZstd:
		w := zstdWriters.Get().(*zstd.Encoder)
		dst = w.EncodeAll(content, append(dst, zstandard))
		zstdWriters.Put(w)
	}
	if len(dst) == begin || len(dst)-begin > len(content) {
		dst = append(append(dst[:begin], none), content...)
	}
	return dst
}

func decompress(b []byte, limit int) ([]byte, error) {
	if len(b) < 1 {
		return nil, errFrame
	}
	compression, b := b[0], b[1:]
	var from io.Reader
	switch compression {
	case none:
		if len(b) > limit {
			return nil, tooLarge(limit)
		}
		return b, nil
	case gzipped:
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, errFrame
		}
		from = r
	case zstandard:
		r := zstdReaders.Get().(*zstd.Decoder)
		defer func() {
			_ = r.Reset(nil)
			zstdReaders.Put(r)
		}()
		if err := r.Reset(bytes.NewReader(b)); err != nil {
			return nil, errFrame
		}
		from = r
	default:
		return nil, errFrame
	}
	content, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	switch {
	case err != nil:
		return nil, errFrame
	case len(content) > limit:
		return nil, tooLarge(limit)
	}
	return content, nil
}

func tooLarge(limit int) error {
	return fmt.Errorf("the frame's content has more than %d bytes", limit)
}

// ContentLimit is the most bytes of the content of a message whose body has up to some bytes.
func ContentLimit(body int) int { return body + 2*(HeadLimit+16) + body/1024 }

// Limit is the most bytes of a frame with such content.
func Limit(body int) int { return ContentLimit(body) + 512 }
