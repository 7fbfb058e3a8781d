// Package file makes messages of a file's content: a line of text with the id and the time in milliseconds since the Unix epoch, as
// payload/bytes has it and reads it, and then the file unchanged, the same in every message.
package file

import (
	"fmt"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/wording"
)

const (
	// MaxBytes is the largest file: a ConfigMap holds no more.
	MaxBytes = 1 << 20
	// MaxLine is the longest line before it in bytes.
	MaxLine = 64
)

// Maker makes messages of one file.
type Maker struct{ content []byte }

// New reads the file at path.
func New(path string) (*Maker, error) {
	content, err := wording.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("payload file:%w", err)
	}
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("payload file:%s has %d bytes: want %d at most", path, len(content), MaxBytes)
	}
	return &Maker{content}, nil
}

// Append appends the message with the given id to dst.
func (m *Maker) Append(dst []byte, id string, at time.Time) []byte {
	dst = append(append(dst, id...), ' ')
	dst = append(strconv.AppendInt(dst, at.UnixMilli(), 10), '\n')
	return append(dst, m.content...)
}
