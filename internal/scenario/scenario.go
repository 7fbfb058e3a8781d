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

// Scenario is a compiled scenario. It is safe for concurrent use; each goroutine needs its own cursor.
type Scenario struct {
	r         io.ReaderAt
	size      int64
	index     index
	platforms []int
	slots     []int // each platform's slot
}

// Open opens a compiled scenario. It keeps the index in memory and r open. An invalid file is a *CorruptError.
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

// decompress checks the checksum and the unpacked length, and uses space if it is large enough.
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

// Platforms returns the platforms in ascending order. The caller must not change the slice.
func (s *Scenario) Platforms() []int { return s.platforms }

// Index returns a platform's index in Platforms.
func (s *Scenario) Index(platform int) (i int, ok bool) {
	return slices.BinarySearch(s.platforms, platform)
}

// Duration is the time from 0 to the last moment.
func (s *Scenario) Duration() time.Duration { return s.index.duration }

// HasPathloss reports whether any pathloss is known at any time.
func (s *Scenario) HasPathloss() bool { return s.has(pathloss) || s.has(pathlossAt) }

// HasPositions reports whether any position is known at any time.
func (s *Scenario) HasPositions() bool { return s.has(position) }

// CommEffects, FadingSelections and AntennaEvents are names in OtherContents.
const (
	CommEffects      = "comm effects"
	FadingSelections = "fading selections"
	AntennaEvents    = "antenna profiles"
)

// Antennas returns the platforms' profiles; nil for a scenario compiled without a manifest.
func (s *Scenario) Antennas() antenna.Profiles { return s.index.antennas }

// AntennaStarts returns the platforms with antenna profiles, ascending, and when each has its first.
func (s *Scenario) AntennaStarts() []AntennaStart { return s.index.begins }

// AntennaPlatforms returns the platforms that ever have antenna profiles, ascending.
func (s *Scenario) AntennaPlatforms() (platforms []int) {
	for _, b := range s.index.begins {
		platforms = append(platforms, b.Platform)
	}
	return platforms
}

// OtherContents names the scenario's content other than movement and pathloss, in the plural. It includes antenna profiles
// without a manifest.
func (s *Scenario) OtherContents() (names []string) {
	for _, x := range []struct {
		kind kind
		name string
	}{{commEffect, CommEffects}, {fadingSelection, FadingSelections}, {antennaProfile, AntennaEvents}} {
		if s.has(x.kind) && (x.kind != antennaProfile || s.index.antennas == nil) {
			names = append(names, x.name)
		}
	}
	return names
}

// HasFadingSelections reports whether the scenario ever says which fading a receiver applies to a transmitter.
func (s *Scenario) HasFadingSelections() bool { return s.has(fadingSelection) }

func (s *Scenario) has(k kind) bool {
	return slices.ContainsFunc(s.index.classes, func(c class) bool { return c.kind == k })
}

// Statistics returns the scenario's statistics.
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
