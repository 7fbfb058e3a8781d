package server

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
)

// fileDigests remembers the SHA-256 of files that are not sealed: records and results.
type fileDigests struct {
	mu    sync.Mutex
	known map[string]fileDigest
}

// fileDigest is valid while the file has this size and time: records and results are replaced completely.
type fileDigest struct {
	size     int64
	modified time.Time
	digest   string
}

// digest of a run's file, which is read only if it has changed.
func (c *fileDigests) digest(files *archive.Run, p string) (string, error) {
	f, err := files.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, known := c.known[p]; known && have.size == info.Size() && have.modified.Equal(info.ModTime()) {
		return have.digest, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	if c.known == nil {
		c.known = map[string]fileDigest{}
	}
	c.known[p] = fileDigest{info.Size(), info.ModTime(), hex.EncodeToString(hash.Sum(nil))}
	return c.known[p].digest, nil
}

// addDigests completes the manifest of a sealed run. Logs that still grow have no digest.
func (r *run) addDigests(manifest *runapi.Manifest) error {
	if !r.isSealed() {
		return nil
	}
	for i := range manifest.Files {
		file := &manifest.Files[i]
		if file.SHA256 != "" {
			continue
		}
		sum, err := r.digests.digest(r.files, file.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // replaced meanwhile
		}
		if err != nil {
			return err
		}
		file.SHA256 = sum
	}
	return nil
}

// getArchive sends all files of a run, or those of some kinds, as one tar file. It keeps only a piece of a file in memory.
func (s *Server) getArchive(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "reading this run", s.mayRead)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	selection := runapi.Selection{Only: splitList(query.Get("only")), Without: splitList(query.Get("without"))}
	if err := selection.Check(); err != nil {
		return statusErrorf(http.StatusBadRequest, "%v", err)
	}
	files, err := run.files.Files()
	if err != nil {
		return err
	}
	key := run.files.Key()
	folder := runapi.FolderName(key.Name, key.UID)
	setFileHeader(w.Header(), folder+".tar")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", folder+".tar"))
	t := tar.NewWriter(&deadlineWriter{w, http.NewResponseController(w)})
	for _, file := range files {
		if !selection.Has(file.Path) {
			continue
		}
		if err := run.writeTar(t, folder, file.Path); err != nil {
			s.config.Log.Info("a download was broken off", "run", key.String(), "file", file.Path, "error", err)
			panic(http.ErrAbortHandler) // so that no client takes this for the end
		}
	}
	if err := t.Close(); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// splitList splits words that are joined by commas.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// writeTar writes one file at its current length. All files have the time T0, so that a run always gives the same archive.
func (r *run) writeTar(t *tar.Writer, folder, p string) error {
	f, err := r.files.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // replaced or deleted meanwhile
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + p, Mode: 0o644, Size: info.Size(), ModTime: r.startTime()}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, info.Size())
	return err
}

// startTime is T0 in whole seconds, or the Unix epoch without a T0.
func (r *run) startTime() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record.T0 == nil {
		return time.Unix(0, 0)
	}
	return r.record.T0.Truncate(time.Second)
}

// deadlineWriter gives each piece of an answer its own time limit: a slow reader may take long, a stalled one may not.
type deadlineWriter struct {
	io.Writer
	control *http.ResponseController
}

func (p *deadlineWriter) Write(piece []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(pieceTimeout))
	return p.Writer.Write(piece)
}

// reportPolicy lets a report run its own scripts and nothing else: it loads nothing and connects to nobody.
// As a sandbox without an origin it has no access to this server. Names and texts in it come from tenants.
const reportPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"

// getReport shows the report of a run, the only file that a browser may take for a page.
func (s *Server) getReport(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "reading this run", s.mayRead)
	if err != nil {
		return err
	}
	f, err := run.files.Open(runapi.ReportFile)
	info, err := statOpened(f, err, "run %s has no report: the analysis writes it after the run", run.files.Key().UID)
	if err != nil {
		return err
	}
	defer f.Close()
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", reportPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	serveContent(w, r, info, info.ModTime(), f)
	return nil
}
