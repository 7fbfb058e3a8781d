package store

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// HashTree adds the names relative to root, the modes and the contents of all files below path, at any place of root.
func HashTree(h io.Writer, root, path string) error {
	return filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %v %d\n", name, info.Mode(), info.Size())
		if !info.Mode().IsRegular() {
			return nil
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, f)
		return err
	})
}
