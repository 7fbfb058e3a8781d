package exi

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// width returns how many bits a number below count takes.
func width(count int) int {
	if count <= 1 {
		return 0
	}
	return bits.Len(uint(count - 1))
}

// bitWriter writes bit-packed values (EXI 1.0, section 7.1).
type bitWriter struct {
	out []byte
	// last holds the bits of the byte that is not full yet, of which there are used.
	last byte
	used int
}

func (w *bitWriter) bits(value uint64, count int) {
	for count > 0 {
		take := min(8-w.used, count)
		count -= take
		part := byte(value>>count) & (1<<take - 1)
		w.last |= part << (8 - w.used - take)
		if w.used += take; w.used == 8 {
			w.out, w.last, w.used = append(w.out, w.last), 0, 0
		}
	}
}

// code writes a number below count.
func (w *bitWriter) code(value, count int) { w.bits(uint64(value), width(count)) }

// unsigned writes seven bits at a time, the least significant first.
func (w *bitWriter) unsigned(value uint64) {
	for value >= 0x80 {
		w.bits(value&0x7f|0x80, 8)
		value >>= 7
	}
	w.bits(value, 8)
}

// text writes a length, of which the string's is offset less, and the string's characters.
func (w *bitWriter) text(s string, offset int) {
	w.unsigned(uint64(utf8.RuneCountInString(s) + offset))
	for _, r := range s {
		w.unsigned(uint64(r))
	}
}

// bytes returns all that was written, filled up to a byte with zeros.
func (w *bitWriter) bytes() []byte {
	if w.used > 0 {
		return append(w.out, w.last)
	}
	return w.out
}

// bitReader reads what a bitWriter wrote. After the first error all values are zero.
type bitReader struct {
	data []byte
	at   int // in bits
	err  error
}

func (r *bitReader) fail(format string, values ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, values...)
	}
}

func (r *bitReader) left() int { return len(r.data)*8 - r.at }

func (r *bitReader) bits(count int) (value uint64) {
	if count > r.left() && r.err == nil {
		r.err = errTruncated
	}
	if r.err != nil {
		return 0
	}
	for count > 0 {
		used := r.at % 8
		take := min(8-used, count)
		part := r.data[r.at/8] >> (8 - used - take) & (1<<take - 1)
		value = value<<take | uint64(part)
		r.at += take
		count -= take
	}
	return value
}

// code reads a number that must be below count.
func (r *bitReader) code(count int, what string) int {
	value := int(r.bits(width(count)))
	if value >= count && r.err == nil {
		r.fail("EXI stream has %s %d of %d", what, value, count)
		return 0
	}
	return value
}

func (r *bitReader) unsigned() (value uint64) {
	for shift := 0; ; shift += 7 {
		octet := r.bits(8)
		if r.err != nil {
			return 0
		}
		if shift > 56 {
			r.fail("EXI stream has a number of more than 63 bits")
			return 0
		}
		value |= octet & 0x7f << shift
		if octet < 0x80 {
			return value
		}
	}
}

// length checks the length of a string whose characters take bitsEach at least.
func (r *bitReader) length(length uint64, bitsEach int) int {
	if r.err == nil && length*uint64(max(bitsEach, 1)) > uint64(r.left()) || length > MaxBytes {
		r.fail("EXI stream has a string of %d characters in %d bytes", length, r.left()/8)
		return 0
	}
	return int(length)
}

// text reads characters, as many as length says.
func (r *bitReader) text(length uint64) string {
	n := r.length(length, 8)
	var out strings.Builder
	out.Grow(n)
	for range n {
		r.character(&out, r.unsigned())
	}
	return out.String()
}

// character appends a character that XML has to out.
func (r *bitReader) character(out *strings.Builder, value uint64) {
	if r.err != nil {
		return
	}
	if value > utf8.MaxRune || !isXML(rune(value)) {
		r.fail("EXI stream has character 0x%X: want one of XML", value)
		return
	}
	out.WriteRune(rune(value))
}

// isXML reports whether XML 1.0 has a character.
func isXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= utf8.MaxRune
}

// ended reports whether nothing but the last byte's filling is left.
func (r *bitReader) ended() bool {
	left := r.left()
	return left < 8 && r.bits(left) == 0
}
