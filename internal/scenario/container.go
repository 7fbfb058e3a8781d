package scenario

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"vignette.dev/vignette/internal/antenna"
)

// The file: header, chunks, index, footer; numbers of fixed width are little-endian.
//
//	header  magic (8 bytes), version (uint32), zero (uint32)
//	chunk   zstd frame of moments (see encode.go)
//	index   zstd frame: classes, platforms by slot, duration, counts, and of each chunk its length, times and checksum;
//	        in version 2 also the platforms with antenna profiles, each with its first, and the profiles
//	footer  offset (uint64), length, unpacked length and CRC-32C of the index (uint32 each), zero (uint32), magic (8 bytes)
const (
	version      = 1
	withAntennas = 2 // the version of scenarios with antenna profiles
	headerLength = 16
	footerLength = 32
)

var (
	headMagic  = [8]byte{'V', 'I', 'G', 'S', 'C', 'E', 'N', 0}
	footMagic  = [8]byte{'V', 'I', 'G', 'S', 'C', 'E', 'N', 'E'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

const (
	// maxIndexLength limits the unpacked index: 30 bytes for each of 2 million chunks.
	maxIndexLength = 64 << 20
	// maxChunkLength limits an unpacked chunk.
	maxChunkLength = 512 << 20
)

// chunk is an entry of the index.
type chunk struct {
	offset      int64
	length, raw int
	checksum    uint32
	// The first and last moment in nanoseconds.
	first, last int64
}

// index is the index of a compiled scenario.
type index struct {
	classes   []class
	platforms []int // by slot
	duration  time.Duration
	moments   int64
	changes   int64
	chunks    []chunk
	// antennas are the profiles, and begins has when platforms first have one; nil if radios use none.
	antennas antenna.Profiles
	begins   []AntennaStart
}

// version returns the file's version.
func (x *index) version() uint32 {
	if x.antennas != nil {
		return withAntennas
	}
	return version
}

func header(version uint32) []byte {
	head := append([]byte{}, headMagic[:]...)
	head = binary.LittleEndian.AppendUint32(head, version)
	return binary.LittleEndian.AppendUint32(head, 0)
}

func checkHeader(head []byte) error {
	if [8]byte(head[:8]) != headMagic {
		return &CorruptError{"it does not begin as one"}
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != version && v != withAntennas {
		return &CorruptError{fmt.Sprintf("version is %d: this program knows versions %d and %d", v, version, withAntennas)}
	}
	if binary.LittleEndian.Uint32(head[12:]) != 0 {
		return &CorruptError{"its header has something where there is nothing"}
	}
	return nil
}

// footer is a file's footer.
type footer struct {
	offset      int64
	length, raw int
	checksum    uint32
}

func (f footer) encode() []byte {
	foot := binary.LittleEndian.AppendUint64(nil, uint64(f.offset))
	foot = binary.LittleEndian.AppendUint32(foot, uint32(f.length))
	foot = binary.LittleEndian.AppendUint32(foot, uint32(f.raw))
	foot = binary.LittleEndian.AppendUint32(foot, f.checksum)
	foot = binary.LittleEndian.AppendUint32(foot, 0)
	return append(foot, footMagic[:]...)
}

// decodeFooter decodes the footer of a file of this size.
func decodeFooter(foot []byte, size int64) (footer, error) {
	if [8]byte(foot[24:]) != footMagic {
		return footer{}, &CorruptError{"it does not end as one: it may be cut short"}
	}
	offset := binary.LittleEndian.Uint64(foot)
	length, raw := binary.LittleEndian.Uint32(foot[8:]), binary.LittleEndian.Uint32(foot[12:])
	if binary.LittleEndian.Uint32(foot[20:]) != 0 || offset < headerLength || offset > uint64(size) || offset+uint64(length)+footerLength != uint64(size) || raw > maxIndexLength {
		return footer{}, &CorruptError{"its footer does not fit its size"}
	}
	return footer{offset: int64(offset), length: int(length), raw: int(raw), checksum: binary.LittleEndian.Uint32(foot[16:])}, nil
}

func (x *index) encode() []byte {
	raw := binary.AppendUvarint(nil, uint64(len(x.classes)))
	for _, c := range x.classes {
		raw = binary.AppendUvarint(append(raw, byte(c.kind)), c.frequencyHertz)
	}
	raw = binary.AppendUvarint(raw, uint64(len(x.platforms)))
	for _, p := range x.platforms {
		raw = binary.AppendUvarint(raw, uint64(p))
	}
	for _, v := range []int64{int64(x.duration), x.moments, x.changes, int64(len(x.chunks))} {
		raw = binary.AppendUvarint(raw, uint64(v))
	}
	last := int64(0)
	for _, c := range x.chunks {
		for _, v := range []int64{int64(c.length), int64(c.raw), int64(c.checksum), c.first - last, c.last - c.first} {
			raw = binary.AppendUvarint(raw, uint64(v))
		}
		last = c.last
	}
	if x.antennas == nil {
		return raw
	}
	raw = binary.AppendUvarint(raw, uint64(len(x.begins)))
	for _, b := range x.begins {
		raw = binary.AppendUvarint(binary.AppendUvarint(raw, uint64(b.Platform)), uint64(b.At))
	}
	return append(raw, x.antennas.Encode()...)
}

// decodeIndex decodes the index of a version, with chunks up to an offset.
func decodeIndex(raw []byte, version uint32, end int64) (*index, error) {
	d := &decoder{raw: raw}
	x := &index{}
	if err := x.decodeClasses(d); err != nil {
		return nil, err
	}
	if err := x.decodePlatforms(d); err != nil {
		return nil, err
	}
	duration, moments, changes := d.uvarint(), d.uvarint(), d.uvarint()
	if d.bad || duration > uint64(MaxDuration) {
		return nil, &CorruptError{fmt.Sprintf("duration is %d ns: want at most %s", duration, MaxDuration)}
	}
	x.duration, x.moments, x.changes = time.Duration(duration), int64(moments), int64(changes)
	if err := x.decodeChunks(d, end); err != nil {
		return nil, err
	}
	if version == withAntennas {
		if err := x.decodeAntennas(d); err != nil {
			return nil, err
		}
	}
	if d.bad || d.more() {
		return nil, &CorruptError{"its index has another length than its contents"}
	}
	return x, nil
}

// decodeAntennas decodes the antennas at the end of the index.
func (x *index) decodeAntennas(d *decoder) error {
	last := 0
	for range min(d.uvarint(), MaxPlatforms+1) {
		platform, at := d.uvarint(), d.uvarint()
		if d.bad || platform <= uint64(last) || !slices.Contains(x.platforms, int(min(platform, MaxPlatform+1))) || at > uint64(MaxDuration) {
			return &CorruptError{"its platforms with antenna profiles make no sense"}
		}
		last = int(platform)
		x.begins = append(x.begins, AntennaStart{int(platform), time.Duration(at)})
	}
	profiles, err := antenna.Decode(d.raw[d.pos:])
	if err != nil || len(profiles) == 0 {
		return &CorruptError{"its antenna profiles make no sense"}
	}
	d.pos = len(d.raw)
	x.antennas = profiles
	return nil
}

func (x *index) decodeClasses(d *decoder) error {
	n := d.uvarint()
	if n > uint64(kinds)+maxFrequencies {
		return &CorruptError{fmt.Sprintf("it has %d classes", n)}
	}
	seen := map[class]bool{}
	for range n {
		c := class{kind: kind(min(d.uvarint(), uint64(kinds))), frequencyHertz: d.uvarint()}
		if d.bad || !c.kind.valid() || seen[c] || (c.kind != pathlossAt && c.frequencyHertz != 0) {
			return &CorruptError{fmt.Sprintf("it has a class of kind %d and frequency %d", c.kind, c.frequencyHertz)}
		}
		seen[c] = true
		x.classes = append(x.classes, c)
	}
	return nil
}

func (x *index) decodePlatforms(d *decoder) error {
	n := d.uvarint()
	if n > MaxPlatforms {
		return &CorruptError{fmt.Sprintf("it has %d platforms: want at most %d", n, MaxPlatforms)}
	}
	seen := map[uint64]bool{}
	for range n {
		p := d.uvarint()
		if d.bad || p < MinPlatform || p > MaxPlatform || seen[p] {
			return &CorruptError{fmt.Sprintf("platform %d is twice in it or not from %d to %d", p, MinPlatform, MaxPlatform)}
		}
		seen[p] = true
		x.platforms = append(x.platforms, int(p))
	}
	return nil
}

func (x *index) decodeChunks(d *decoder, end int64) error {
	n := d.uvarint()
	if d.bad || n > uint64(len(d.raw)) {
		return &CorruptError{fmt.Sprintf("it has %d chunks", n)}
	}
	offset, last := int64(headerLength), int64(0)
	for i := range n {
		length, raw, checksum, gap, span := d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()
		if d.bad || length > uint64(end-offset) || raw == 0 || raw > maxChunkLength ||
			gap > uint64(MaxDuration) || span > uint64(MaxDuration) || (i > 0 && gap == 0) {
			return &CorruptError{fmt.Sprintf("chunk %d makes no sense", i)}
		}
		c := chunk{offset: offset, length: int(length), raw: int(raw), checksum: uint32(checksum), first: last + int64(gap)}
		c.last = c.first + int64(span)
		if c.last > int64(x.duration) {
			return &CorruptError{fmt.Sprintf("chunk %d ends after the scenario", i)}
		}
		x.chunks = append(x.chunks, c)
		offset, last = offset+int64(length), c.last
	}
	if offset != end {
		return &CorruptError{"its chunks do not end where its index begins"}
	}
	return nil
}
