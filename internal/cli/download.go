package cli

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	// filesAtOnce are downloaded concurrently.
	filesAtOnce = 4
	// attempts at a file whose connection breaks, or that is replaced meanwhile; pauseBetween them.
	attempts     = 4
	pauseBetween = time.Second
)

// runFile is the run record, below a run's folder.
const runFile = "run.json"

// isTarball reports whether a name is that of a compressed file rather than of a folder.
func isTarball(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// download a run, or some kinds of its files, into a folder or a compressed file.
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
	destination = cmp.Or(destination, runapi.FolderName(name, uid))
	if !d.sealed {
		fmt.Fprintf(notes, "%s is under way: these are its present files, which cannot be verified yet\n", name)
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
	// files to download, by path.
	files map[string]runapi.ManifestFile
	// sealed is set if the files no longer grow and have digests.
	sealed bool
	// bytes of all files, and how many files existed already.
	bytes, kept atomic.Int64
}

// toFolder keeps existing files, so that an interrupted download can continue.
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

// checkFolder refuses a folder with another run, as the files would be mixed. A download of some kinds has no record, but maybe results.
func (d *download) checkFolder(root *os.Root, folder string) error {
	for _, file := range []string{runFile, "results/results.json"} {
		text, err := root.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var has struct{ UID, Name, Experiment string }
		if json.Unmarshal(text, &has) == nil && has.UID != "" && has.UID != d.uid { // a damaged one is downloaded again
			return fmt.Errorf("%s has run %s of %s, and this is run %s: choose another folder", folder, has.UID, cmp.Or(has.Name, has.Experiment), d.uid)
		}
	}
	return nil
}

// fetch one file, in several attempts. It stays within the root, whatever name the server gives it.
func (d *download) fetch(ctx context.Context, root *os.Root, file runapi.ManifestFile) error {
	if known, n := d.isDownloaded(root, file); known {
		d.kept.Add(1)
		d.bytes.Add(n)
		return nil
	}
	if err := root.MkdirAll(path.Dir(file.Path), 0o755); err != nil {
		return err
	}
	return inAttempts(ctx, isRetryable, func(again bool) (err error) {
		if again {
			if file, err = d.refreshed(ctx, file); err != nil {
				return err
			}
		}
		n, err := d.attempt(ctx, root, file)
		if err == nil {
			d.bytes.Add(n)
		}
		return err
	})
}

// inAttempts tries several times, as long as the error is a retryable one.
func inAttempts(ctx context.Context, retryable func(error) bool, try func(again bool) error) error {
	for attempt := 1; ; attempt++ {
		err := try(attempt > 1)
		if err == nil || attempt == attempts || !retryable(err) {
			return err
		}
		if err := pause(ctx, pauseBetween); err != nil {
			return err
		}
	}
}

// isDownloaded reports whether the folder has the file with its digest in the archive.
func (d *download) isDownloaded(root *os.Root, file runapi.ManifestFile) (bool, int64) {
	if file.SHA256 == "" {
		return false, 0
	}
	sum, n, err := fileDigest(root, file.Path)
	return err == nil && sum == file.SHA256, n
}

// refreshed returns the file's present digest: records and results may be replaced during a download.
func (d *download) refreshed(ctx context.Context, file runapi.ManifestFile) (runapi.ManifestFile, error) {
	manifest, err := d.archive.Digests(ctx, d.uid)
	if err != nil {
		return file, nil //nolint:nilerr // the next attempt shows the error
	}
	for _, now := range manifest.Files {
		if now.Path == file.Path {
			return now, nil
		}
	}
	return file, errNoLonger
}

// errNoLonger: the file was deleted during the download.
var errNoLonger = errors.New("the archive no longer has it")

// errDamaged: the received file differs from the archive's.
var errDamaged = errors.New("the received data do not have the archive's SHA-256")

func isRetryable(err error) bool {
	if e := asServerError(err); e != nil {
		return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError || e.Status == http.StatusRequestedRangeNotSatisfiable
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, errNoLonger) && !errors.Is(err, fs.ErrPermission) && !errors.As(err, new(*fs.PathError))
}

// attempt continues where an earlier one ended.
func (d *download) attempt(ctx context.Context, root *os.Root, file runapi.ManifestFile) (int64, error) {
	part := path.Join(path.Dir(file.Path), "."+path.Base(file.Path)+".part")
	if file.SHA256 == "" {
		_ = root.Remove(part) // it may be part of another file
	}
	if err := d.appendRest(ctx, root, part, file); err != nil {
		return 0, err
	}
	sum, n, err := fileDigest(root, part)
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
			return fmt.Errorf("%s cannot be started again", part)
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

func fileDigest(root *os.Root, name string) (sum string, n int64, err error) {
	file, err := root.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	hash := sha256.New()
	n, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), n, err
}

// toTarball writes one compressed file, which appears when it is complete.
func (d *download) toTarball(ctx context.Context, name string, selection runapi.Selection) error {
	content, err := d.archive.Archive(ctx, d.uid, selection)
	if err != nil {
		return err
	}
	defer content.Close()
	return writeAtomically(name, func(out io.Writer) error {
		packed := gzip.NewWriter(out)
		stream := io.TeeReader(content, packed)
		if err := d.checkTar(stream); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, stream); err != nil { // padding after the archive's end
			return err
		}
		return packed.Close()
	})
}

// checkTar compares an archive with the run's files.
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
			return fmt.Errorf("the archive ended early: %w", err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		hash := sha256.New()
		n, err := io.Copy(hash, archive)
		if err != nil {
			return fmt.Errorf("the archive ended early, in %s: %w", name, err)
		}
		if want := d.files[name].SHA256; want != "" && want != hex.EncodeToString(hash.Sum(nil)) {
			return fmt.Errorf("%s: %w", name, errDamaged)
		}
		d.bytes.Add(n)
		delete(missing, name)
	}
	for name := range missing {
		return fmt.Errorf("the archive ended early: it has no %s", name)
	}
	return nil
}

// writeAtomically writes a file that appears when it is complete. A link, a pipe or a device stays what it is.
func writeAtomically(name string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // also of /dev/stdout, which may be a file's
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	}
	part := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"-"+rand.Text()+".part")
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // less the umask, unlike os.CreateTemp
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(part, name)
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
	if e, ok := errors.AsType[*runclient.Error](err); ok {
		return e
	}
	return nil
}
