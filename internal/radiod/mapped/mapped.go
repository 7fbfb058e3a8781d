// Package mapped maps files into memory that the kernel keeps when the process is killed at any instruction.
package mapped

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open maps a file, which it makes if there is none, up to a size. The caller unmaps the memory.
func Open(path string, size int) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("mapped file: %w", err)
	}
	defer file.Close()
	// The space is allocated here, because on a full volume a write to the mapping would kill the process.
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(size)); err != nil {
		return nil, fmt.Errorf("mapped file %s of %d bytes: %w", path, size, err)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mapped file %s of %d bytes: %w", path, size, err)
	}
	return memory, nil
}
