package scenario

import (
	"bytes"
	"context"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// InMemory returns the options of a builder that keeps so many events in memory.
func InMemory(events int) Options { return Options{eventsInMemory: events} }

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	unpacker, _ = newDecompressor()
)

// Contents returns the index and the chunk of a compiled scenario with one chunk.
func Contents(file []byte) (index, first []byte) {
	f, err := decodeFooter(file[len(file)-footerLength:], int64(len(file)))
	if err != nil {
		panic(err)
	}
	if index, err = unpacker.DecodeAll(file[f.offset:f.offset+int64(f.length)], nil); err != nil {
		panic(err)
	}
	if first, err = unpacker.DecodeAll(file[headerLength:f.offset], nil); err != nil {
		panic(err)
	}
	return index, first
}

// Container returns the file of an index and a chunk with correct checksums.
func Container(index, chunk []byte) []byte { return container(version, index, chunk) }

// ContainerWithAntennas returns a Container of the version with antenna profiles.
func ContainerWithAntennas(index, chunk []byte) []byte { return container(withAntennas, index, chunk) }

func container(version uint32, index, chunk []byte) []byte {
	file := bytes.NewBuffer(header(version))
	file.Write(packer.EncodeAll(chunk, nil))
	packed := packer.EncodeAll(index, nil)
	foot := footer{offset: int64(file.Len()), length: len(packed), raw: len(index), checksum: crc32.Checksum(packed, castagnoli)}
	file.Write(packed)
	file.Write(foot.encode())
	return file.Bytes()
}

// ContainerOfChunk adds a valid index for four platforms and all kinds.
func ContainerOfChunk(raw []byte) []byte {
	packed := packer.EncodeAll(raw, nil)
	x := index{platforms: []int{4, 1, 3, 2}, duration: 1 << 40, chunks: []chunk{
		{length: len(packed), raw: len(raw), checksum: crc32.Checksum(packed, castagnoli), first: 0, last: 4_000_000_000},
	}}
	for k := position; k < kinds; k++ {
		x.classes = append(x.classes, class{kind: k})
	}
	return Container(x.encode(), raw)
}

// MovementsWithin are Movements of at most so many bytes.
func MovementsWithin(ctx context.Context, s *Scenario, most int) (map[int][]byte, error) {
	return s.movements(ctx, most)
}
