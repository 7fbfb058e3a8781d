package frame

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"vignette.dev/vignette/internal/proxy/message"
)

// Content is a whole HTTP message without its framing, as the proxies keep and carry it: the head behind its length, pieces of the body behind
// theirs, a zero, and the trailer behind its length. It can be written while the body still comes.

// HeadLimit is the most bytes of a head or a trailer.
const HeadLimit = 64 << 10

// pieceBytes is the largest piece of a body.
const pieceBytes = 32 << 10

// errContent is the error of content that the other proxy cannot have written.
var errContent = errors.New("the content is malformed")

// WriteContent writes a message. The body's trailer is read after its end. The result is the body's length.
func WriteContent(w io.Writer, h message.Head, body io.Reader, trailer func() []string) (int64, error) {
	head := h.Append(nil)
	if _, err := w.Write(append(binary.AppendUvarint(nil, uint64(len(head))), head...)); err != nil {
		return 0, err
	}
	written := int64(0)
	piece := make([]byte, pieceBytes)
	for {
		n, err := io.ReadFull(body, piece)
		if n > 0 {
			written += int64(n)
			if _, err := w.Write(binary.AppendUvarint(nil, uint64(n))); err != nil {
				return written, err
			}
			if _, err := w.Write(piece[:n]); err != nil {
				return written, err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && n > 0:
			return written, writeTrailer(w, body, trailer)
		case err != nil:
			return written, err
		}
	}
}

// writeTrailer writes what follows the body.
func writeTrailer(w io.Writer, body io.Reader, trailer func() []string) error {
	// A short piece may be the end, or the loss of the connection: only the next read tells.
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	fields := message.AppendFields(nil, trailer())
	end := binary.AppendUvarint(binary.AppendUvarint(nil, 0), uint64(len(fields)))
	_, err := w.Write(append(end, fields...))
	return err
}

// Content reads what WriteContent wrote. After the body's end Trailer has the fields behind it.
type Content struct {
	Head    message.Head
	Trailer []string
	reader  *bufio.Reader
	left    uint64
	end     error
}

// ReadContent reads the head of content; reading the result gives the body.
func ReadContent(r io.Reader) (*Content, error) {
	c := &Content{reader: bufio.NewReader(r)}
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	if c.Head, err = message.ReadHead(part, HeadLimit); err != nil || !ended(part) {
		return nil, errContent
	}
	return c, nil
}

// part reads a length, and returns a reader of that many bytes.
func (c *Content) part() (*bufio.Reader, error) {
	n, err := binary.ReadUvarint(c.reader)
	if err != nil || n > HeadLimit+2 {
		return nil, errContent
	}
	return bufio.NewReader(io.LimitReader(c.reader, int64(n))), nil //nolint:gosec // small
}

func ended(r *bufio.Reader) bool {
	_, err := r.ReadByte()
	return errors.Is(err, io.EOF)
}

// Read implements io.Reader for the body.
func (c *Content) Read(p []byte) (int, error) {
	if c.end == nil && c.left == 0 {
		c.next()
	}
	if c.end != nil || len(p) == 0 {
		return 0, c.end
	}
	n, err := c.reader.Read(p[:min(uint64(len(p)), c.left)])
	c.left -= uint64(n) //nolint:gosec // not negative
	if err != nil {
		c.end = errContent
		return n, c.end
	}
	return n, nil
}

// next begins the next piece, or ends with the trailer.
func (c *Content) next() {
	var err error
	if c.left, err = binary.ReadUvarint(c.reader); err != nil || c.left > pieceBytes {
		c.end = errContent
		return
	}
	if c.left > 0 {
		return
	}
	part, err := c.part()
	if err == nil {
		c.Trailer, err = message.ReadTrailer(part, HeadLimit+2)
	}
	if err != nil || !ended(part) || !ended(c.reader) {
		c.end = errContent
		return
	}
	c.end = io.EOF
}
