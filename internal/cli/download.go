package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
)

const (
	// filesAtOnce of a download.
	filesAtOnce = 4
	// attempts at a file whose connection breaks, or that was replaced while it came; pauseBetween them.
	attempts     = 4
	pauseBetween = time.Second
)

// runFile is the run record, below a run's folder.
const runFile = "run.json"

// isTarball tells that a name is that of one compressed file rather than of a folder.
func isTarball(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// download a run, or some kinds of its files, into a folder or one compressed file.
func (c *cluster) download(ctx context.Context, name, uid, destination string, selection runapi.Selection, notes io.Writer) error {
	manifest, err := c.archive.Digests(ctx, uid)
	if err != nil {
		return err
	}
	d := &download{cluster: c, uid: uid, files: map[string]runapi.ManifestFile{}}
	for _, file := range manifest.Files {
		if selection.Has(file.Path) {
			d.files[file.Path] = file
			d.sealed = d.sealed || file.SHA256 != ""
		}
	}
	if len(d.files) == 0 {
		return fmt.Errorf("run %s has no such files: vignette results -n %s %s --files lists those it has", uid, c.namespace, name)
	}
	if destination == "" {
		destination = runapi.FolderName(name, uid)
	}
	if !d.sealed {
		fmt.Fprintf(notes, "%s goes on: these are its files as they are now, and nothing says that they arrive whole\n", name)
	}
	if isTarball(destination) {
		err = d.toTarball(ctx, destination, selection)
	} else {
		err = d.toFolder(ctx, destination)
	}
	if err != nil {
		return err
	}
	checked := ""
	if d.sealed {
		checked = ", each as the archive's SHA-256 says"
	}
	_, err = fmt.Fprintf(notes, "%d files, %s, in %s%s; %d were there already\n", len(d.files), size(d.bytes.Load()), filepath.Clean(destination), checked, d.kept.Load())
	return err
}

// download of one run.
type download struct {
	*cluster
	uid string
	// files that are wanted, by their paths.
	files map[string]runapi.ManifestFile
	// sealed tells that the files do not grow any more and have digests.
	sealed bool
	// bytes of all files, and how many of them were there already.
	bytes, kept atomic.Int64
}

// toFolder keeps what is there already, so that a download that broke off goes on when it is asked for again.
func (d *download) toFolder(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := d.checkFolder(root, folder); err != nil {
		return err
	}
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(filesAtOnce)
	for _, file := range d.files {
		workers.Go(func() error {
			if err := d.fetch(ctx, root, file); err != nil {
				return fmt.Errorf("%s: %w", file.Path, err)
			}
			return nil
		})
	}
	return workers.Wait()
}

// checkFolder refuses a folder that has another run: files of both would look like one.
func (d *download) checkFolder(root *os.Root, folder string) error {
	text, err := root.ReadFile(runFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	record, err := runapi.ReadRunRecord(filepath.Join(folder, runFile), text)
	if err == nil && record.UID != d.uid {
		return fmt.Errorf("%s has run %s of %s, and this is run %s: name another folder", folder, record.UID, record.Name, d.uid)
	}
	return nil // one that is damaged is fetched anew
}

// fetch one file, in several attempts. Whatever the server says that a file is called, it stays within the root.
func (d *download) fetch(ctx context.Context, root *os.Root, file runapi.ManifestFile) (err error) {
	if known, n := d.there(root, file); known {
		d.kept.Add(1)
		d.bytes.Add(n)
		return nil
	}
	if err := root.MkdirAll(path.Dir(file.Path), 0o755); err != nil {
		return err
	}
	for attempt := range attempts {
		if attempt > 0 {
			if err := pause(ctx, pauseBetween); err != nil {
				return err
			}
			if file, err = d.again(ctx, file); err != nil {
				return err
			}
		}
		var n int64
		if n, err = d.attempt(ctx, root, file); err == nil {
			d.bytes.Add(n)
			return nil
		}
		if !worthAnotherAttempt(err) {
			return err
		}
	}
	return err
}

// there tells that the file is in the folder already, with the digest that it has in the archive.
func (d *download) there(root *os.Root, file runapi.ManifestFile) (bool, int64) {
	if file.SHA256 == "" {
		return false, 0
	}
	sum, n, err := sumOf(root, file.Path)
	return err == nil && sum == file.SHA256, n
}

// again asks what a file should be: records and results may be replaced while they are fetched.
func (d *download) again(ctx context.Context, file runapi.ManifestFile) (runapi.ManifestFile, error) {
	manifest, err := d.archive.Digests(ctx, d.uid)
	if err != nil {
		return file, nil //nolint:nilerr // the next attempt at the file tells
	}
	for _, now := range manifest.Files {
		if now.Path == file.Path {
			return now, nil
		}
	}
	return file, errors.New("the archive has it no longer")
}

// errDamaged tells that what came is not what the archive has.
var errDamaged = errors.New("what came has another SHA-256 than the archive says")

func worthAnotherAttempt(err error) bool {
	if e := asServerError(err); e != nil {
		return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError || e.Status == http.StatusRequestedRangeNotSatisfiable
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, fs.ErrPermission) && !errors.As(err, new(*fs.PathError))
}

// attempt goes on where an earlier one broke off.
func (d *download) attempt(ctx context.Context, root *os.Root, file runapi.ManifestFile) (int64, error) {
	part := path.Join(path.Dir(file.Path), "."+path.Base(file.Path)+".part")
	if file.SHA256 == "" {
		_ = root.Remove(part) // it may be the beginning of something else
	}
	if err := d.appendRest(ctx, root, part, file); err != nil {
		return 0, err
	}
	sum, n, err := sumOf(root, part)
	if err == nil && file.SHA256 != "" && sum != file.SHA256 {
		err = errDamaged
	}
	if err != nil {
		return n, errors.Join(err, root.Remove(part))
	}
	return n, root.Rename(part, file.Path)
}

func (d *download) appendRest(ctx context.Context, root *os.Root, part string, file runapi.ManifestFile) (err error) {
	out, err := root.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	offset, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if offset > file.Bytes {
		if offset = 0; out.Truncate(0) != nil {
			return fmt.Errorf("%s cannot be begun anew", part)
		}
		if _, err := out.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	content, err := d.archive.FileFrom(ctx, d.uid, file.Path, offset)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(out, content)
	return err
}

func sumOf(root *os.Root, name string) (sum string, n int64, err error) {
	file, err := root.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	hash := sha256.New()
	n, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), n, err
}

// toTarball writes one compressed file, which is there once it is whole.
func (d *download) toTarball(ctx context.Context, name string, selection runapi.Selection) error {
	content, err := d.archive.Archive(ctx, d.uid, selection)
	if err != nil {
		return err
	}
	defer content.Close()
	return writeWhole(name, func(out io.Writer) error {
		packed := gzip.NewWriter(out)
		stream := io.TeeReader(content, packed)
		if err := d.checkTar(stream); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, stream); err != nil { // what follows the archive's end
			return err
		}
		return packed.Close()
	})
}

// checkTar holds an archive against what the run has.
func (d *download) checkTar(stream io.Reader) error {
	missing := map[string]bool{}
	for name := range d.files {
		missing[name] = true
	}
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the archive broke off: %w", err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		hash := sha256.New()
		n, err := io.Copy(hash, archive)
		if err != nil {
			return fmt.Errorf("the archive broke off in %s: %w", name, err)
		}
		if want := d.files[name].SHA256; want != "" && want != hex.EncodeToString(hash.Sum(nil)) {
			return fmt.Errorf("%s: %w", name, errDamaged)
		}
		d.bytes.Add(n)
		delete(missing, name)
	}
	for name := range missing {
		return fmt.Errorf("the archive broke off: it has no %s", name)
	}
	return nil
}

// writeWhole writes a file that appears only once it is whole.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(write(file), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func asServerError(err error) *runclient.Error {
	var e *runclient.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
