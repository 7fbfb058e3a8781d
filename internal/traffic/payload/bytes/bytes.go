// Package bytes makes messages of any size: a line of text with the id and, where it fits, the time
// in milliseconds since the Unix epoch, then seeded random bytes, which no link can compress.
package bytes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

const (
	// MinBytes has room for an id of a short name.
	MinBytes = 32
	// MaxBytes is the largest payload of an MQTT packet, less its header.
	MaxBytes = 268_435_000
	// maxLine is the longest line with an id.
	maxLine = 256
	// maxDigits is how many digits of a message's number must fit in a size.
	maxDigits = 6
)

// Maker makes messages of one size.
type Maker struct {
	size   int
	random *rand.ChaCha8
}

// Check returns an error for a size of messages in which the entity's ids do not fit, or that is too large.
func Check(entity string, size int) error {
	need := max(MinBytes, len(entity)+len("_")+maxDigits+len("\n"))
	if size < need || size > MaxBytes {
		return fmt.Errorf("payload bytes:%d of entity %s: want from %d (its message id has to fit) to %d", size, entity, need, MaxBytes)
	}
	return nil
}

// New returns a Maker of messages of size bytes. It fails if the entity's ids do not fit.
func New(entity string, size int, seed int64) (*Maker, error) {
	if err := Check(entity, size); err != nil {
		return nil, err
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(seed))
	copy(key[8:], "payload/bytes")
	return &Maker{size: size, random: rand.NewChaCha8(key)}, nil
}

// Resize sets the size of the next messages.
func (m *Maker) Resize(size int) { m.size = size }

// Append appends the message with the given id to dst.
func (m *Maker) Append(dst []byte, id string, at time.Time) []byte {
	start := len(dst)
	dst = append(dst, id...)
	if stamp := " " + strconv.FormatInt(at.UnixMilli(), 10); len(id)+len(stamp)+1 <= m.size {
		dst = append(dst, stamp...)
	}
	dst = append(dst, '\n')
	filled := len(dst) - start
	if filled > m.size {
		return dst // an id with more digits than were checked for is not cut
	}
	dst = append(dst, make([]byte, m.size-filled)...)
	_, _ = m.random.Read(dst[start+filled:]) // never fails
	return dst
}

// isID reports whether a text has the form ENTITY_NUMBER. Subscribers call it for each message.
func isID(text string) bool {
	entity, number, ok := cutLast(text, '_')
	if !ok || entity == "" || number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	for i := range len(entity) {
		c := entity[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !alphanumeric && (i == 0 || !strings.ContainsRune("._:/-", rune(c))) {
			return false
		}
	}
	return true
}

func cutLast(text string, separator byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(text, separator); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// Parse returns the id and the time, if any, in the first line.
func Parse(payload []byte) (id string, at time.Time, ok bool) {
	end := bytes.IndexByte(payload[:min(len(payload), maxLine)], '\n')
	if end < 0 {
		return "", at, false
	}
	id, stamp, stamped := strings.Cut(string(payload[:end]), " ")
	if !isID(id) {
		return "", at, false
	}
	if stamped {
		ms, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || ms <= 0 {
			return "", at, false
		}
		at = time.UnixMilli(ms)
	}
	return id, at, true
}
