// Package gz compresses messages by gzip, and expands those of others within a limit.
package gz

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync"
)

var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Append adds compressed content to dst.
func Append(dst, content []byte) []byte {
	out := bytes.NewBuffer(dst)
	w := writers.Get().(*gzip.Writer)
	w.Reset(out)
	_, _ = w.Write(content) // a buffer never fails
	_ = w.Close()
	writers.Put(w)
	return out.Bytes()
}

// ErrTooLarge is the error of content that expands to more than it may.
var ErrTooLarge = errors.New("the content expands to more than it may")

// Expand returns the content of up to most bytes that was compressed.
func Expand(compressed []byte, most int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(content) > most {
		return nil, ErrTooLarge
	}
	return content, err
}
