package wording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ReadFile reads a file. Its error says in words why it cannot be read.
func ReadFile(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, unread(path, err)
	}
	return content, nil
}

// unread says why the file at path cannot be read.
func unread(path string, err error) error {
	switch number := syscall.Errno(0); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such file", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: this user may not read it", path)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s is a directory: want a file", path)
	case errors.As(err, &number):
		return fmt.Errorf("%s cannot be read: %w", path, number)
	}
	return err
}
