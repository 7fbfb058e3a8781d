package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// diskWait is how long a disk's driver may need.
	diskWait     = 15 * time.Second
	diskInterval = 200 * time.Millisecond
)

// folderOrDisk returns the folder, or mounts the disk with the label, read-only, at the given place.
func folderOrDisk(folder, label, at string) (string, error) {
	if folder != "" {
		return folder, nil
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", err
	}
	var device, kind string
	for end := time.Now().Add(diskWait); ; time.Sleep(diskInterval) {
		if device, kind = findDisk("/sys/class/block", "/dev", label); device != "" {
			break
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("no disk has a file system labelled %s: want an ISO 9660 or ext4 one", label)
		}
	}
	if err := unix.Mount(device, at, kind, unix.MS_RDONLY|unix.MS_NODEV|unix.MS_NOSUID, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return "", fmt.Errorf("mount %s, labelled %s, as %s: %w", device, label, kind, err)
	}
	return at, nil
}

// findDisk searches all block devices for a file system with the label.
func findDisk(class, devices, label string) (device, kind string) {
	entries, err := os.ReadDir(class)
	if err != nil {
		return "", ""
	}
	for _, entry := range entries {
		path := filepath.Join(devices, entry.Name())
		kind, found := readLabel(path)
		if kind != "" && found == label {
			return path, kind
		}
	}
	return "", ""
}

// Where the labels are: ISO 9660's primary volume descriptor (ECMA-119, 8.4) and ext4's superblock.
const (
	isoAt, isoLabelAt, isoLabelBytes    = 16 * 2048, 40, 32
	extAt, extMagicAt                   = 1024, 0x38
	extLabelAt, extLabelBytes, extBytes = 0x78, 16, 0x88
)

// readLabel returns the kind of file system and its label; empty if it is neither ISO 9660 nor ext4, or cannot be read.
func readLabel(path string) (kind, label string) {
	f, err := os.Open(path)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode()&fs.ModeCharDevice != 0 {
		return "", ""
	}
	block := make([]byte, isoLabelAt+isoLabelBytes)
	if _, err := f.ReadAt(block, isoAt); err == nil && block[0] == 1 && string(block[1:6]) == "CD001" {
		return "iso9660", strings.TrimRight(string(block[isoLabelAt:]), " \x00")
	}
	super := make([]byte, extBytes)
	if _, err := f.ReadAt(super, extAt); err == nil && super[extMagicAt] == 0x53 && super[extMagicAt+1] == 0xef {
		name, _, _ := bytes.Cut(super[extLabelAt:extLabelAt+extLabelBytes], []byte{0})
		return "ext4", string(name)
	}
	return "", ""
}
