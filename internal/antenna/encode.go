package antenna

import (
	"encoding/binary"
	"errors"
	"math"
)

// Encode the profiles: patterns, each once, then the profiles, which name patterns by their number, 0 for none.
func (p Profiles) Encode() []byte {
	patterns := p.patterns()
	numbers := map[*Pattern]uint64{}
	raw := binary.AppendUvarint(nil, uint64(len(patterns)))
	for i, pattern := range patterns {
		numbers[pattern] = uint64(i + 1)
		raw = pattern.encode(raw)
	}
	raw = binary.AppendUvarint(raw, uint64(len(p)))
	for i := range p {
		f := &p[i]
		for _, v := range []uint64{uint64(f.ID), numbers[f.Antenna], numbers[f.Blockage]} {
			raw = binary.AppendUvarint(raw, v)
		}
		for _, v := range []float64{f.Placement.North, f.Placement.East, f.Placement.Up} {
			raw = appendFloat(raw, v)
		}
	}
	return raw
}

func (p *Pattern) encode(raw []byte) []byte {
	raw = binary.AppendUvarint(raw, uint64(len(p.Elevations)))
	for i := range p.Elevations {
		e := &p.Elevations[i]
		raw = binary.AppendUvarint(appendRange(raw, e.Min, e.Max), uint64(len(e.Bearings)))
		for _, b := range e.Bearings {
			raw = appendFloat(appendRange(raw, b.Min, b.Max), b.Gain)
		}
	}
	return raw
}

func appendRange(raw []byte, low, high int16) []byte {
	return binary.AppendVarint(binary.AppendVarint(raw, int64(low)), int64(high))
}

func appendFloat(raw []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
}

var errNoProfiles = errors.New("its antenna profiles make no sense")

// Decode profiles that Encode made.
func Decode(raw []byte) (Profiles, error) {
	d := &decoder{raw: raw}
	patterns := make([]*Pattern, d.count(2))
	for i := range patterns {
		patterns[i] = d.pattern()
	}
	pattern := func() *Pattern {
		n := d.uvarint()
		if n == 0 || n > uint64(len(patterns)) {
			d.bad = d.bad || n > 0
			return nil
		}
		return patterns[n-1]
	}
	profiles := make(Profiles, d.count(27))
	for i := range profiles {
		profiles[i] = Profile{ID: int(min(d.uvarint(), math.MaxUint16+1)), Antenna: pattern(), Blockage: pattern(), Placement: Placement{d.float(), d.float(), d.float()}}
	}
	if d.bad || len(d.raw) > 0 {
		return nil, errNoProfiles
	}
	return profiles, profiles.Check()
}

// decoder of bytes, which are bad from the first that is not as it should be.
type decoder struct {
	raw []byte
	bad bool
}

func (d *decoder) pattern() *Pattern {
	p := &Pattern{Elevations: make([]Elevation, d.count(3))}
	for i := range p.Elevations {
		e := &p.Elevations[i]
		e.Min, e.Max = d.degrees(), d.degrees()
		e.Bearings = make([]Bearing, d.count(10))
		for k := range e.Bearings {
			e.Bearings[k] = Bearing{d.degrees(), d.degrees(), d.float()}
		}
	}
	return p
}

// count of things, each of which takes at least so many bytes: a length that is a lie takes no memory.
func (d *decoder) count(least int) int {
	n := d.uvarint()
	if n > uint64(len(d.raw)/least) {
		d.bad = true
	}
	if d.bad {
		return 0
	}
	return int(n)
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.raw)
	return d.taken(v, n)
}

func (d *decoder) taken(v uint64, n int) uint64 {
	if n <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.raw = d.raw[n:]
	return v
}

func (d *decoder) degrees() int16 {
	v, n := binary.Varint(d.raw)
	if v < math.MinInt16 || v > math.MaxInt16 {
		d.bad = true
	}
	return int16(d.taken(uint64(v), n)) //nolint:gosec // in range, or bad
}

func (d *decoder) float() float64 {
	if len(d.raw) < 8 {
		d.bad = true
		return 0
	}
	return math.Float64frombits(d.taken(binary.LittleEndian.Uint64(d.raw), 8))
}
