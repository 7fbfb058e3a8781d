package scenario

import (
	"encoding/binary"
)

// A moment is encoded as its distance in nanoseconds from the moment before, the number of its sections, and the sections.
// A section has a class and whether its entries apply to both directions; the number of entries; their keys, each as the distance from
// the one before; and their values, column by column, each as the difference from the previous value. In the
// first moment of a chunk all previous values are unknown and 0, so that it is a snapshot.
//
// All numbers are varints. zstd compresses equal gaps and small differences well.

// appendSection appends the section of a class, for both directions or not.
func appendSection(raw []byte, class int, both bool, keys []int, values []int64, width int) []byte {
	if len(keys) == 0 {
		return raw
	}
	head := uint64(class) << 1
	if both {
		head |= 1
	}
	raw = binary.AppendUvarint(raw, head)
	raw = binary.AppendUvarint(raw, uint64(len(keys)))
	previous := -1
	for _, key := range keys {
		raw = binary.AppendUvarint(raw, uint64(key-previous-1))
		previous = key
	}
	for column := range width {
		for i := column; i < len(values); i += width {
			raw = binary.AppendVarint(raw, values[i])
		}
	}
	return raw
}

// section is a section under construction.
type section struct {
	keys   []int
	values []int64
}

func (s *section) reset() { s.keys, s.values = s.keys[:0], s.values[:0] }

// appendMoment encodes the changes of one class. keys ascend; next has an entry's new values; old has the previous ones, and is nil
// in a snapshot. It returns the number of written sections.
func (e *encoder) appendMoment(class int, st *state, keys []int, next, old []int64) (sections int) {
	e.both.reset()
	e.single.reset()
	width := st.kind.width()
	for i := 0; i < len(keys); i++ {
		key := keys[i]
		to := &e.single
		if width == 1 && st.kind.pairs() && key&1 == 0 && i+1 < len(keys) && keys[i+1] == key+1 && next[key] == next[key+1] {
			to, i = &e.both, i+1
			to.keys = append(to.keys, key>>1)
		} else {
			to.keys = append(to.keys, key)
		}
		for column := key * width; column < (key+1)*width; column++ {
			value := next[column]
			if old != nil {
				value -= old[column]
			}
			to.values = append(to.values, value)
		}
	}
	e.raw = appendSection(e.raw, class, true, e.both.keys, e.both.values, width)
	e.raw = appendSection(e.raw, class, false, e.single.keys, e.single.values, width)
	for _, s := range []*section{&e.both, &e.single} {
		if len(s.keys) > 0 {
			sections++
		}
	}
	return sections
}

// encoder encodes the moments of a chunk.
type encoder struct {
	raw          []byte
	both, single section
}

// decoder decodes the moments of a chunk.
type decoder struct {
	raw []byte
	pos int
	bad bool
}

func (d *decoder) more() bool { return d.pos < len(d.raw) }

func (d *decoder) uvarint() uint64 {
	if d.pos < len(d.raw) && d.raw[d.pos] < 0x80 {
		d.pos++
		return uint64(d.raw[d.pos-1])
	}
	v, n := binary.Uvarint(d.raw[d.pos:])
	if n <= 0 {
		d.bad, d.pos = true, len(d.raw)
		return 0
	}
	d.pos += n
	return v
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// section applies the next section to the states and returns false if it is invalid. keys is scratch space.
func (d *decoder) section(states []state, platforms int, keys *[]int) bool {
	head, count := d.uvarint(), d.uvarint()
	index, both := head>>1, head&1 == 1
	if d.bad || index >= uint64(len(states)) || count == 0 || count > uint64(len(d.raw)-d.pos) {
		return false
	}
	st := &states[index]
	st.grow(platforms)
	limit := len(st.known)
	if both {
		if st.kind.width() != 1 || !st.kind.pairs() {
			return false
		}
		limit /= 2
	}
	if !d.keys(keys, int(count), limit) {
		return false
	}
	if both {
		d.bothWays(st, *keys)
	} else {
		d.values(st, *keys)
	}
	return !d.bad
}

func (d *decoder) keys(keys *[]int, count, limit int) bool {
	list := (*keys)[:0]
	key := -1
	for range count {
		gap := d.uvarint()
		if d.bad || gap >= uint64(limit) || key+1+int(gap) >= limit {
			return false
		}
		key += 1 + int(gap)
		list = append(list, key)
	}
	*keys = list
	return true
}

func (d *decoder) bothWays(st *state, keys []int) {
	for _, pair := range keys {
		key := 2 * pair
		value := st.values[key] + d.varint()
		st.values[key], st.values[key+1] = value, value
		st.known[key], st.known[key+1] = true, true
	}
}

func (d *decoder) values(st *state, keys []int) {
	width := st.kind.width()
	for _, key := range keys {
		st.known[key] = true
	}
	for column := range width {
		for _, key := range keys {
			st.values[key*width+column] += d.varint()
		}
	}
}
