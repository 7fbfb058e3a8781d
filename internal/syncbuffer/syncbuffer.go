// Package syncbuffer holds what a program writes while a test reads it.
package syncbuffer

import (
	"bytes"
	"sync"
)

// Buffer is a bytes.Buffer for several goroutines. The zero value is empty and ready for use.
type Buffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write implements io.Writer; it never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

// String is all that has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}
