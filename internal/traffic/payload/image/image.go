// Package image makes incompressible images of any size: PNG (ISO/IEC 15948) in shades of grey, whose pixels are seeded random
// bytes, stored without compression. Any viewer shows them. The message's id and the time in milliseconds since
// the Unix epoch are the text of the first chunk after the header: tEXt, keyword Comment.
package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// MinBytes is the smallest image: headers, an id and some pixels.
	MinBytes = 1024
	// MaxBytes is the largest image.
	MaxBytes = 16 << 20
	// signature is that of PNG files.
	signature = "\x89PNG\r\n\x1a\n"
	// keyword is that of the text chunk.
	keyword = "Comment\x00"
	// chunkBytes are length, type and CRC of a chunk; zlibBytes the header and checksum of its stream; maxBlock what a stored block of deflate
	// holds, behind a header of blockBytes.
	chunkBytes, zlibBytes, blockBytes, maxBlock = 12, 6, 5, 65535
	headerBytes                                 = 13
	// maxComment is the longest text that Parse reads.
	maxComment = 256
)

// Maker makes images of one size.
type Maker struct {
	size   int
	random *rand.ChaCha8
}

// New makes images of size bytes.
func New(size int, seed int64) (*Maker, error) {
	if size < MinBytes || size > MaxBytes {
		return nil, fmt.Errorf("payload image:%d: want from %d to %d bytes", size, MinBytes, MaxBytes)
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(seed))
	copy(key[8:], "payload/image")
	return &Maker{size: size, random: rand.NewChaCha8(key)}, nil
}

// Append appends the image with the given id to dst.
func (m *Maker) Append(dst []byte, id string, at time.Time) []byte {
	comment := keyword + id + " " + strconv.FormatInt(at.UnixMilli(), 10)
	// The rest is for pixels, their blocks' headers, and bytes that fill no row. These go to a private ancillary chunk.
	left := m.size - len(signature) - (chunkBytes + headerBytes) - (chunkBytes + len(comment)) - chunkBytes - (chunkBytes + zlibBytes) - chunkBytes
	width, height := shape(left)
	pixels := height * (width + 1)
	dst = append(dst, signature...)
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(width)), uint32(height))
	dst = chunk(dst, "IHDR", append(header, 8, 0, 0, 0, 0)) // 8 bits, grey, deflate, no filter of its own, not interlaced
	dst = chunk(dst, "tEXt", []byte(comment))
	dst = chunk(dst, "vgNt", m.bytes(left-pixels-blockBytes*blocks(pixels)))
	dst = chunk(dst, "IDAT", stored(m.rows(width, height)))
	return chunk(dst, "IEND", nil)
}

// shape returns the largest, nearly square image whose rows and blocks fit in a number of bytes.
func shape(room int) (width, height int) {
	pixels := room - blockBytes*blocks(room)
	width = int(math.Sqrt(float64(pixels))) - 1
	return width, pixels / (width + 1)
}

// blocks returns how many deflate blocks hold a number of bytes.
func blocks(n int) int { return (n + maxBlock - 1) / maxBlock }

func (m *Maker) bytes(n int) []byte {
	made := make([]byte, n)
	_, _ = m.random.Read(made) // never fails
	return made
}

// rows returns rows of random pixels, each after the byte for "no filter".
func (m *Maker) rows(width, height int) []byte {
	rows := m.bytes(height * (width + 1))
	for row := range height {
		rows[row*(width+1)] = 0
	}
	return rows
}

// stored returns a zlib stream (RFC 1950) of uncompressed blocks.
func stored(data []byte) []byte {
	stream := make([]byte, 0, len(data)+zlibBytes+blockBytes*blocks(len(data)))
	stream = append(stream, 0x78, 0x01)
	sum := adler32.Checksum(data)
	for len(data) > 0 {
		n := min(len(data), maxBlock)
		final := byte(0)
		if n == len(data) {
			final = 1
		}
		stream = append(stream, final)
		stream = binary.LittleEndian.AppendUint16(stream, uint16(n))
		stream = binary.LittleEndian.AppendUint16(stream, ^uint16(n))
		stream = append(stream, data[:n]...)
		data = data[n:]
	}
	return binary.BigEndian.AppendUint32(stream, sum)
}

func chunk(dst []byte, kind string, data []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	start := len(dst)
	dst = append(append(dst, kind...), data...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*_[0-9]+$`)

// Parse returns the id and the time in the comment of a PNG image. It does not verify checksums.
func Parse(payload []byte) (id string, at time.Time, ok bool) {
	const before = len(signature) + chunkBytes + headerBytes
	rest, found := bytes.CutPrefix(payload, []byte(signature))
	if !found || len(payload) < before+chunkBytes {
		return "", at, false
	}
	rest = rest[before-len(signature):]
	length := binary.BigEndian.Uint32(rest)
	if length > maxComment || len(rest) < int(length)+chunkBytes {
		return "", at, false
	}
	text, found := strings.CutPrefix(string(rest[4:8+length]), "tEXt"+keyword)
	id, stamp, stamped := strings.Cut(text, " ")
	if !found || !stamped || !idForm.MatchString(id) {
		return "", at, false
	}
	ms, err := strconv.ParseInt(stamp, 10, 64)
	return id, time.UnixMilli(ms), err == nil && ms > 0
}
