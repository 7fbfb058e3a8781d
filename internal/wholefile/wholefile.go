// Package wholefile replaces files as a whole: whoever reads one finds its old content or its new one.
package wholefile

import (
	"os"
	"syscall"
)

// Unfinished ends the names of files that are being written.
const Unfinished = ".vignette"

// Write replaces a file, or makes it, with a mode whatever the umask is. It does not sync.
func Write(path string, content []byte, mode os.FileMode) error {
	written := path + Unfinished
	err := os.WriteFile(written, content, mode)
	if err == nil {
		err = os.Chmod(written, mode)
	}
	if err == nil {
		err = os.Rename(written, path)
	}
	if err != nil {
		_ = syscall.Unlink(written) // a full volume needs the room
	}
	return err
}
