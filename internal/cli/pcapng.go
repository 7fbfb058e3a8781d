package cli

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The parts of a pcapng block that copying whole blocks takes (draft-ietf-opsawg-pcapng, section 3.1).
const (
	blockHead     = 12 // type, length, and of a section the byte-order magic
	sectionBlock  = 0x0A0D0D0A
	byteOrder     = 0x1A2B3C4D
	largestBlock  = 16 << 20
	captureBuffer = 64 << 10
)

// copyBlocks copies pcapng and flushes whole blocks only, at once, as whoever reads a pipe waits for the
// rest of one that has begun. A last block that is not whole is left out.
func copyBlocks(out io.Writer, in io.Reader) error {
	reader, writer := bufio.NewReaderSize(in, captureBuffer), bufio.NewWriterSize(out, captureBuffer)
	var order binary.ByteOrder = binary.LittleEndian
	for {
		length, err := nextBlock(reader, &order)
		if err == nil && int64(reader.Buffered()) < length { // its rest has to be waited for
			err = writer.Flush()
		}
		var block []byte
		if err == nil {
			block = make([]byte, length)
			_, err = io.ReadFull(reader, block)
		}
		if err == nil {
			_, err = writer.Write(block)
		}
		if err == nil && reader.Buffered() < blockHead {
			err = writer.Flush()
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return writer.Flush()
		case err != nil:
			return errors.Join(err, writer.Flush())
		}
	}
}

// nextBlock gives the length of the block that comes next. Every section says its own byte order.
func nextBlock(reader *bufio.Reader, order *binary.ByteOrder) (int64, error) {
	head, err := reader.Peek(blockHead)
	if err != nil {
		return 0, err
	}
	if binary.LittleEndian.Uint32(head) == sectionBlock { // the same number in both byte orders
		*order = binary.LittleEndian
		if binary.BigEndian.Uint32(head[8:]) == byteOrder {
			*order = binary.BigEndian
		}
	}
	length := int64((*order).Uint32(head[4:]))
	if length < blockHead || length > largestBlock || length%4 != 0 {
		return 0, fmt.Errorf("the archived capture is no pcapng: a block of %d bytes; want %d to %d and a multiple of 4", length, blockHead, largestBlock)
	}
	return length, nil
}
