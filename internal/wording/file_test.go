package wording

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWhyAFileCannotBeReadIsToldInWords(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "x")
	_, noFile := os.ReadFile(missing)
	_, isFolder := os.ReadFile(folder)
	for want, c := range map[string]struct {
		path string
		err  error
	}{
		missing + ": there is no such file":     {missing, noFile},
		folder + " is a directory: want a file": {folder, isFolder},
		"/y: this user may not read it":         {"/y", &fs.PathError{Op: "open", Path: "/y", Err: syscall.EACCES}},
		"/y cannot be read: input/output error": {"/y", &fs.PathError{Op: "read", Path: "/y", Err: syscall.EIO}},
		"the password is wrong":                 {"/y", errText("the password is wrong")},
	} {
		if got := unread(c.path, c.err).Error(); got != want {
			t.Errorf("%v: %q; want %q", c.err, got, want)
		}
	}
}

type errText string

func (e errText) Error() string { return string(e) }
