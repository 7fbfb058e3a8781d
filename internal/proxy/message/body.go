package message

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
)

// Framing is how the end of a message's body is found (RFC 9112, 6.3).
type Framing struct {
	// Length of the body, unless one of the others holds.
	Length     int64
	Chunked    bool
	UntilClose bool
}

// RequestFraming returns the framing of a request.
func RequestFraming(h Head) (Framing, error) {
	f, err := framing(h)
	if f.UntilClose { // only responses may end so
		f = Framing{}
	}
	return f, err
}

// ResponseFraming returns the framing of a response to a request with a method.
func ResponseFraming(h Head, method string, status int) (Framing, error) {
	if Bodiless(method, status) {
		return Framing{}, nil
	}
	return framing(h)
}

// Bodiless reports whether a response has no body, whatever its fields say.
func Bodiless(method string, status int) bool {
	return method == http.MethodHead || status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
}

func framing(h Head) (f Framing, err error) {
	encodings, lengths := h.Values("Transfer-Encoding"), h.Values("Content-Length")
	switch {
	case len(encodings) > 0 && len(lengths) > 0:
		return f, malformed("the message has Transfer-Encoding and Content-Length: want one")
	case len(encodings) > 1 || len(encodings) == 1 && !strings.EqualFold(encodings[0], "chunked"):
		return f, &Error{http.StatusNotImplemented, fmt.Sprintf("Transfer-Encoding is %q: want chunked or none", short(strings.Join(encodings, ", ")))}
	case len(encodings) == 1:
		return Framing{Chunked: true}, nil
	case len(lengths) == 0:
		return Framing{UntilClose: true}, nil
	}
	for _, length := range lengths {
		if length != lengths[0] {
			return f, malformed("the message has the different Content-Lengths %s", short(strings.Join(lengths, ", ")))
		}
	}
	n, err := strconv.ParseUint(lengths[0], 10, 62)
	if err != nil {
		return f, malformed("Content-Length is %q: want a number of bytes", short(lengths[0]))
	}
	return Framing{Length: int64(n)}, nil //nolint:gosec // 62 bits
}

// Empty reports whether there is no body.
func (f Framing) Empty() bool { return f == Framing{} }

// Body reads a message's body. After its end Trailer has the fields behind it.
type Body struct {
	Trailer []string
	reader  *bufio.Reader
	content io.Reader
	framing Framing
	left    int64
	limit   int
	end     error
}

// NewBody reads a body with a framing from r. Its trailer may have up to limit bytes.
func NewBody(r *bufio.Reader, f Framing, limit int) *Body {
	b := &Body{reader: r, framing: f, left: f.Length, limit: limit}
	switch {
	case f.Chunked:
		b.content = httputil.NewChunkedReader(r)
	case f.UntilClose:
		b.content = r
	default:
		b.content = io.LimitReader(r, f.Length)
	}
	return b
}

// Read implements io.Reader. The end before the body is whole is io.ErrUnexpectedEOF.
func (b *Body) Read(p []byte) (int, error) {
	if b.end != nil {
		return 0, b.end
	}
	n, err := b.content.Read(p)
	b.left -= int64(n)
	if err != nil {
		b.end = b.atEnd(err)
		err = b.end
	}
	return n, err
}

func (b *Body) atEnd(err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		if b.framing.Chunked && err.Error() != io.ErrUnexpectedEOF.Error() && !isNetwork(err) {
			return malformed("the chunked body is malformed")
		}
		return err
	case b.framing.Chunked:
		if b.Trailer, err = ReadTrailer(b.reader, b.limit); err != nil {
			return err
		}
	case !b.framing.UntilClose && b.left > 0:
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

// isNetwork reports whether an error is that of a connection.
func isNetwork(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout)
}

// WriteBody writes a body with its framing; the trailer is asked for after the body's end.
func WriteBody(w io.Writer, body io.Reader, f Framing, trailer func() []string) error {
	if !f.Chunked {
		_, err := io.Copy(w, body)
		return err
	}
	chunks := httputil.NewChunkedWriter(w)
	if _, err := io.Copy(chunks, body); err != nil {
		return err
	}
	if err := chunks.Close(); err != nil {
		return err
	}
	_, err := w.Write(AppendFields(nil, trailer()))
	return err
}
