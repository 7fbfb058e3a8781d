package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/hack/devcluster/run"
	"vignette.dev/vignette/hack/devcluster/store"
)

// BuildahCommand is the name under which this program becomes buildah.
const BuildahCommand = "buildah"

// storage is a place where buildah keeps images.
type storage struct {
	program string
	before  []string
	// transport is the archive format that keeps an image's id: ours
	// are OCI images, others most likely Docker's.
	transport string
}

// ownStorage is in our folder. machineStorage is that of buildah
// called by hand.
func ownStorage() storage {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return storage{program: program, before: []string{BuildahCommand}, transport: "oci-archive"}
}

func machineStorage() storage { return storage{program: "buildah", transport: "docker-archive"} }

func (s storage) buildah(args ...string) run.Command {
	return run.Command{Name: s.program, Args: append(append([]string{}, s.before...), args...)}
}

// ExecBuildah becomes buildah, with its storage in our folder and its mounts
// in a namespace of their own: killed at any moment, it leaves no mount behind.
func ExecBuildah(home store.Home, args []string) error {
	program, err := exec.LookPath("buildah")
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("new mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	kept := filepath.Join(string(home), "containers")
	for _, dir := range []string{kept, "/var/lib/containers", "/run/containers"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	err = errors.Join(
		unix.Mount(kept, "/var/lib/containers", "", unix.MS_BIND, ""),
		unix.Mount("tmpfs", "/run/containers", "tmpfs", 0, "mode=700"))
	if err != nil {
		return fmt.Errorf("storage of images in %s: %w", kept, err)
	}
	return syscall.Exec(program, append([]string{"buildah"}, args...), os.Environ())
}

// Built is an image in one of buildah's storages.
type Built struct {
	Identity
	storage storage
}

// Find finds an image in our own storage, or else in the machine's.
func Find(ctx context.Context, name string) (Built, error) {
	var problem error
	for _, s := range []storage{ownStorage(), machineStorage()} {
		id, err := s.find(ctx, name)
		if err == nil {
			return Built{Identity{Names: []string{fullName(name)}, ID: id}, s}, nil
		}
		problem = err
	}
	return Built{}, fmt.Errorf("image %q is neither a file nor in buildah's storage: %w", name, problem)
}

func (s storage) find(ctx context.Context, name string) (id string, err error) {
	out, err := run.Output(ctx, s.buildah("inspect", "--type", "image", "--format", "{{.FromImageID}}", name))
	return strings.TrimSpace(out), err
}

// Export writes the image to an archive, which exists until remove is called.
func (b Built) Export(ctx context.Context, home store.Home, log string) (archive string, remove func(), err error) {
	if err := os.MkdirAll(home.Images(), 0o755); err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp(home.Images(), "export-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(folder) }
	archive = filepath.Join(folder, "image.tar")
	if err := run.Logged(ctx, log, b.storage.buildah("push", "--quiet", "--disable-compression", b.ID, b.storage.transport+":"+archive+":"+b.Names[0])); err != nil {
		remove()
		return "", nil, err
	}
	return archive, remove, nil
}
