package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install copies the running program to DIR/agent, so that containers of any image can start it from a shared volume.
// It replaces an older copy atomically.
func Install(dir string) error {
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("install agent: %w", err)
	}
	defer source.Close()
	// Readable and executable by everybody, as the app's image chooses the user.
	return writeAtomically(filepath.Join(dir, "agent"), source, 0o755)
}

// writeAtomically replaces a file in one step, and makes its folders.
func writeAtomically(path string, content io.Reader, mode os.FileMode) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if _, err := io.Copy(temporary, content); err != nil {
		temporary.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := temporary.Chmod(mode); err != nil {
		temporary.Close()
		return err
	}
	if err := temporary.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(temporary.Name(), path)
}
