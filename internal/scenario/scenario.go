package scenario

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"vignette.dev/vignette/internal/antenna"
)

// Scenario that was compiled. It is safe for concurrent use; each goroutine needs a cursor of its own.
type Scenario struct {
	r         io.ReaderAt
	size      int64
	index     index
	platforms []int
	slots     []int // slot of each platform
}

// Open a compiled scenario. It keeps the index in memory and r open. It is a *CorruptError if r does not have one.
func Open(r io.ReaderAt, size int64) (*Scenario, error) {
	if size < headerLength+footerLength {
		return nil, &CorruptError{fmt.Sprintf("it has %d bytes: too few", size)}
	}
	head, foot := make([]byte, headerLength), make([]byte, footerLength)
	if err := errors.Join(readAt(r, head, 0), readAt(r, foot, size-footerLength)); err != nil {
		return nil, err
	}
	if err := checkHeader(head); err != nil {
		return nil, err
	}
	f, err := decodeFooter(foot, size)
	if err != nil {
		return nil, err
	}
	packed := make([]byte, f.length)
	if err := readAt(r, packed, f.offset); err != nil {
		return nil, err
	}
	decompressor, err := newDecompressor()
	if err != nil {
		return nil, err
	}
	defer decompressor.Close()
	raw, err := decompress(decompressor, packed, nil, f.raw, f.checksum)
	if err != nil {
		return nil, err
	}
	x, err := decodeIndex(raw, binary.LittleEndian.Uint32(head[8:]), f.offset)
	if err != nil {
		return nil, err
	}
	return newScenario(r, size, x), nil
}

func newScenario(r io.ReaderAt, size int64, x *index) *Scenario {
	s := &Scenario{r: r, size: size, index: *x, platforms: slices.Sorted(slices.Values(x.platforms))}
	s.slots = make([]int, len(s.platforms))
	for slot, platform := range x.platforms {
		i, _ := slices.BinarySearch(s.platforms, platform)
		s.slots[i] = slot
	}
	return s
}

func newDecompressor() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxChunkLength))
}

// decompress what has this checksum and this length unpacked, into space if it is large enough.
func decompress(d *zstd.Decoder, packed, space []byte, length int, checksum uint32) ([]byte, error) {
	if sum := crc32.Checksum(packed, castagnoli); sum != checksum {
		return nil, &CorruptError{fmt.Sprintf("a checksum is %08x: want %08x", sum, checksum)}
	}
	var h zstd.Header
	if err := h.Decode(packed); err != nil || (h.HasFCS && h.FrameContentSize != uint64(length)) {
		return nil, &CorruptError{fmt.Sprintf("a part does not unpack to %d bytes", length)}
	}
	raw, err := d.DecodeAll(packed, space[:0])
	if err != nil {
		return nil, &CorruptError{"a part does not unpack: " + err.Error()}
	}
	if len(raw) != length {
		return nil, &CorruptError{fmt.Sprintf("a part unpacks to %d bytes: want %d", len(raw), length)}
	}
	return raw, nil
}

func readAt(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return &CorruptError{fmt.Sprintf("it ends at byte %d: want at least %d", offset+int64(n), offset+int64(len(p)))}
	}
	return fmt.Errorf("read the compiled scenario: %w", err)
}

// Platforms in ascending order. The caller must not change the slice.
func (s *Scenario) Platforms() []int { return s.platforms }

// Index of a platform in Platforms.
func (s *Scenario) Index(platform int) (i int, ok bool) {
	return slices.BinarySearch(s.platforms, platform)
}

// Duration from time 0 to the last moment.
func (s *Scenario) Duration() time.Duration { return s.index.duration }

// HasPathloss says whether any pathloss is known at any time.
func (s *Scenario) HasPathloss() bool { return s.has(pathloss) || s.has(pathlossAt) }

// HasPositions says whether any position is known at any time.
func (s *Scenario) HasPositions() bool { return s.has(position) }

// CommEffects and AntennaEvents in Beyond.
const (
	CommEffects   = "comm effects"
	AntennaEvents = "antenna profiles"
)

// Antennas are the profiles that platforms take; nil where the scenario was compiled without a manifest.
func (s *Scenario) Antennas() antenna.Profiles { return s.index.antennas }

// AntennaStarts tell which platforms have antenna profiles, ascending, and from when on.
func (s *Scenario) AntennaStarts() []AntennaStart { return s.index.begins }

// AntennaPlatforms are the platforms that have antenna profiles at some time, ascending.
func (s *Scenario) AntennaPlatforms() (platforms []int) {
	for _, b := range s.index.begins {
		platforms = append(platforms, b.Platform)
	}
	return platforms
}

// Beyond names what the scenario has beyond movement and pathloss, in the plural. Antenna profiles are among it
// where there is no manifest.
func (s *Scenario) Beyond() (names []string) {
	for _, x := range []struct {
		kind kind
		name string
	}{{commEffect, CommEffects}, {fadingSelection, "fading selections"}, {antennaProfile, AntennaEvents}} {
		if s.has(x.kind) && (x.kind != antennaProfile || s.index.antennas == nil) {
			names = append(names, x.name)
		}
	}
	return names
}

func (s *Scenario) has(k kind) bool {
	return slices.ContainsFunc(s.index.classes, func(c class) bool { return c.kind == k })
}

// Statistics of the scenario.
func (s *Scenario) Statistics() Statistics {
	return Statistics{
		Platforms: len(s.platforms),
		Duration:  s.Duration(),
		Pathloss:  s.HasPathloss(),
		Positions: s.HasPositions(),
		Moments:   s.index.moments,
		Changes:   s.index.changes,
		Chunks:    len(s.index.chunks),
		Bytes:     s.size,
	}
}
