package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"vignette.dev/vignette/hack/devcluster/run"
	"vignette.dev/vignette/hack/devcluster/store"
)

// Built looks an image up in buildah's storage.
func Built(ctx context.Context, name string) (Identity, error) {
	out, err := run.Output(ctx, run.Command{Name: "buildah", Args: []string{"inspect", "--type", "image", "--format", "{{.FromImageID}}", name}})
	if err != nil {
		return Identity{}, fmt.Errorf("image %q is neither a file nor in buildah's storage: %w", name, err)
	}
	return Identity{Names: []string{name}, ID: strings.TrimSpace(out)}, nil
}

// Export writes an image of buildah's storage to an archive, until remove is called.
func Export(ctx context.Context, home store.Home, image Identity, log string) (archive string, remove func(), err error) {
	if err := os.MkdirAll(home.Images(), 0o755); err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp(home.Images(), "export-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(folder) }
	archive = filepath.Join(folder, "image.tar")
	arguments := []string{"push", "--quiet", image.ID, "docker-archive:" + archive + ":" + image.Names[0]}
	if err := run.Logged(ctx, log, run.Command{Name: "buildah", Args: arguments}); err != nil {
		remove()
		return "", nil, err
	}
	return archive, remove, nil
}
