package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"vignette.dev/vignette/internal/geo"
)

// Cursor is the state of a scenario at a moment. It is for one goroutine.
//
// It holds one unpacked chunk. Seek continues from the current moment if possible. Backward, or far ahead, it begins at a chunk's snapshot.
type Cursor struct {
	scenario *Scenario
	states   []state
	byKind   [kinds]*state // nil if the scenario has none
	losses   []*state      // by frequency

	zstd   *zstd.Decoder
	packed []byte
	chunk  int // the loaded one, -1 for none
	d      decoder
	keys   []int

	sought int64
	next   int64 // the next moment in the chunk, if any is left
	left   bool
}

// NewCursor returns a cursor before the first moment, when nothing is known.
func (s *Scenario) NewCursor() *Cursor {
	c := &Cursor{scenario: s, states: make([]state, len(s.index.classes)), chunk: -1, sought: -1}
	for i, class := range s.index.classes {
		c.states[i].class = class
		if class.kind == pathlossAt {
			c.losses = append(c.losses, &c.states[i])
		} else {
			c.byKind[class.kind] = &c.states[i]
		}
	}
	return c
}

// Seek moves to the state at t, after all changes up to and including t. Before the first moment nothing is known, after the last
// one nothing changes. After an error nothing is known.
func (c *Cursor) Seek(t time.Duration) error {
	sought := int64(t)
	chunks := c.scenario.index.chunks
	number, exact := slices.BinarySearchFunc(chunks, sought, func(k chunk, at int64) int { return cmp.Compare(k.first, at) })
	if !exact {
		number--
	}
	if number != c.chunk || sought < c.sought {
		if err := c.load(number); err != nil {
			return err
		}
	}
	c.sought = sought
	for c.left && c.next <= sought {
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

// load loads a chunk, or restarts it. Chunk -1 is the time before the first moment.
func (c *Cursor) load(number int) error {
	for i := range c.states {
		c.states[i].forget()
	}
	c.left = false
	if number < 0 {
		c.chunk = number
		return nil
	}
	k := c.scenario.index.chunks[number]
	if number != c.chunk {
		if err := c.unpack(k); err != nil {
			c.chunk, c.sought = -1, -1
			return err
		}
	}
	c.chunk, c.d.pos = number, 0
	c.next, c.left = k.first, true
	if gap := c.d.uvarint(); gap != 0 || c.d.bad {
		return c.damaged()
	}
	return nil
}

func (c *Cursor) unpack(k chunk) error {
	if c.zstd == nil {
		decompressor, err := newDecompressor()
		if err != nil {
			return err
		}
		c.zstd = decompressor
	}
	if cap(c.packed) < k.length {
		c.packed = make([]byte, k.length)
	}
	c.packed = c.packed[:k.length]
	if err := readAt(c.scenario.r, c.packed, k.offset); err != nil {
		return err
	}
	raw, err := decompress(c.zstd, c.packed, c.d.raw, k.raw, k.checksum)
	if err != nil {
		return err
	}
	c.d = decoder{raw: raw}
	return nil
}

// step applies the next moment.
func (c *Cursor) step() error {
	k := c.scenario.index.chunks[c.chunk]
	for range c.d.uvarint() {
		if c.d.bad || !c.d.section(c.states, len(c.scenario.platforms), &c.keys) {
			return c.damaged()
		}
	}
	c.left = c.d.more()
	if !c.left {
		if c.d.bad || c.next != k.last {
			return c.damaged()
		}
		return nil
	}
	gap := c.d.uvarint()
	if c.d.bad || gap == 0 || gap > uint64(k.last-c.next) {
		return c.damaged()
	}
	c.next += int64(gap)
	return nil
}

func (c *Cursor) damaged() error {
	err := &CorruptError{fmt.Sprintf("chunk %d is no sequence of moments near %s", c.chunk, time.Duration(c.next))}
	for i := range c.states {
		c.states[i].forget()
	}
	c.chunk, c.sought, c.left, c.d = -1, -1, false, decoder{}
	return err
}

// Next returns the next moment with a change.
func (c *Cursor) Next() (t time.Duration, more bool) {
	if c.left {
		return time.Duration(c.next), true
	}
	if chunks := c.scenario.index.chunks; c.chunk+1 < len(chunks) {
		return time.Duration(chunks[c.chunk+1].first), true
	}
	return 0, false
}

// entry returns the values of an entry, nil if nothing is known.
func (s *state) entry(key int) []int64 {
	if s == nil || key >= len(s.known) || !s.known[key] {
		return nil
	}
	width := s.kind.width()
	return s.values[key*width : (key+1)*width]
}

// key returns the key of an ordered pair of indexes; from and to differ.
func (c *Cursor) key(from, to int) int { return pairKey(c.scenario.slots[from], c.scenario.slots[to]) }

// Pathloss returns the pathloss in dB from a transmitter to a receiver, by their indexes. If it is unknown nothing is received.
func (c *Cursor) Pathloss(from, to int) (dB float64, known bool) {
	s := c.byKind[pathloss]
	if s == nil || from == to {
		return 0, false
	}
	key := c.key(from, to)
	if key >= len(s.known) || !s.known[key] {
		return 0, false
	}
	return float64(s.values[key]) / 100, true
}

// PathlossAt returns the pathloss at a transmit frequency: its own, else that of 0 Hz (EMANE's rule), else Pathloss.
func (c *Cursor) PathlossAt(from, to int, frequencyHertz uint64) (dB float64, known bool) {
	if from == to {
		return 0, false
	}
	key := c.key(from, to)
	for _, frequency := range [...]uint64{frequencyHertz, 0} {
		for _, s := range c.losses {
			if v := s.entry(key); s.frequencyHertz == frequency && v != nil {
				return float64(v[0]) / 100, true
			}
		}
	}
	return c.Pathloss(from, to)
}

// PathlossFrequencies are the transmit frequencies in Hz that have their own pathloss, ascending, without 0.
func (c *Cursor) PathlossFrequencies() (hertz []uint64) {
	for _, s := range c.losses {
		if s.frequencyHertz != 0 {
			hertz = append(hertz, s.frequencyHertz)
		}
	}
	slices.Sort(hertz)
	return hertz
}

// CommEffect returns the effect from a transmitter to a receiver.
func (c *Cursor) CommEffect(from, to int) (CommEffect, bool) {
	v := c.pairEntry(commEffect, from, to)
	if v == nil {
		return CommEffect{}, false
	}
	return CommEffect{
		Latency: time.Duration(v[0]), Jitter: time.Duration(v[1]),
		LossPercent: float64(v[2]) / scales[commEffect][2], DuplicationPercent: float64(v[3]) / scales[commEffect][3],
		UnicastBitsPerSecond: uint64(v[4]), BroadcastBitsPerSecond: uint64(v[5]),
	}, true
}

// FadingSelection returns the fading model from a transmitter to a receiver.
func (c *Cursor) FadingSelection(from, to int) (Fading, bool) {
	v := c.pairEntry(fadingSelection, from, to)
	if v == nil {
		return FadingNone, false
	}
	return Fading(v[0]), true
}

func (c *Cursor) pairEntry(k kind, from, to int) []int64 {
	if from == to {
		return nil
	}
	return c.byKind[k].entry(c.key(from, to))
}

// three returns three values of a platform, scaled back.
func (c *Cursor) three(k kind, i int) (x, y, z float64, known bool) {
	v := c.byKind[k].entry(c.scenario.slots[i])
	if v == nil {
		return 0, 0, 0, false
	}
	scale := scales[k]
	return float64(v[0]) / scale[0], float64(v[1]) / scale[1], float64(v[2]) / scale[2], true
}

// Position returns a platform's position by its index.
func (c *Cursor) Position(i int) (geo.Position, bool) {
	latitude, longitude, altitude, known := c.three(position, i)
	return geo.Position{Latitude: latitude, Longitude: longitude, Altitude: altitude}, known
}

// Velocity returns a platform's velocity by its index.
func (c *Cursor) Velocity(i int) (geo.Velocity, bool) {
	azimuth, elevation, speed, known := c.three(velocity, i)
	return geo.Velocity{Azimuth: azimuth, Elevation: elevation, Speed: speed}, known
}

// Orientation returns a platform's orientation by its index.
func (c *Cursor) Orientation(i int) (geo.Orientation, bool) {
	pitch, roll, yaw, known := c.three(orientation, i)
	return geo.Orientation{Pitch: pitch, Roll: roll, Yaw: yaw}, known
}

// AntennaProfile returns a platform's antenna profile by its index.
func (c *Cursor) AntennaProfile(i int) (AntennaProfile, bool) {
	id, azimuth, elevation, known := c.three(antennaProfile, i)
	return AntennaProfile{ID: int(id), Azimuth: azimuth, Elevation: elevation}, known
}
