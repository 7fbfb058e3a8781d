// Package build makes a cluster's programs and images,
// once: each product is cached under a hash of all its inputs.
package build

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/store"
)

// Product is a folder's content to build.
type Product struct {
	Name  string
	Label string
	// Expect is the build time on a small machine with empty caches.
	Expect time.Duration
	// Recipe changes whenever the same inputs give another result.
	Recipe string
	// Inputs are its source files and folders.
	Inputs []string
	// Make builds into dir, with its output in the file log.
	Make func(ctx context.Context, h *progress.Handle, dir, log string) error
}

// Cache holds products.
type Cache struct {
	Home store.Home
}

// Key returns the hash of all inputs of the product.
func (p Product) Key() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s/%s\n%s\n", p.Name, p.Recipe, runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, input := range p.Inputs {
		if err := store.HashTree(h, input, input); err != nil {
			return "", fmt.Errorf("inputs of %s: %w", p.Name, err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:16], nil
}

// Path returns the product's path, built or not.
func (c Cache) Path(p Product) (string, error) {
	key, err := p.Key()
	if err != nil {
		return "", err
	}
	return filepath.Join(c.Home.Build(), p.Name+"-"+key), nil
}

// Has reports whether the product is built.
func (c Cache) Has(p Product) bool {
	path, err := c.Path(p)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}

// Step returns the step that builds the product unless it is built.
func (c Cache) Step(p Product) progress.Step {
	expect := p.Expect
	if c.Has(p) {
		expect = 0
	}
	return progress.Step{Label: p.Label, Expect: expect, Do: func(ctx context.Context, h *progress.Handle) error {
		return c.get(ctx, h, p)
	}}
}

func (c Cache) get(ctx context.Context, h *progress.Handle, p Product) error {
	path, err := c.Path(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		h.Result("cached")
		return nil
	}
	unlock, err := store.Lock(ctx, filepath.Join(c.Home.Build(), "."+p.Name+".lock"), func() {
		h.Detail("waiting: another process builds it")
	})
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		h.Result("built by another process")
		return nil
	}
	c.removeUnfinished(p.Name)
	unfinished, err := os.MkdirTemp(c.Home.Build(), ".unfinished-"+p.Name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	log := filepath.Join(c.Home.Logs(), "build-"+p.Name+".log")
	_ = os.Remove(log)
	if err := p.Make(ctx, h, unfinished, log); err != nil {
		return err
	}
	if err := os.Chmod(unfinished, 0o755); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// removeUnfinished removes the remains of a killed build. The product's lock is held.
func (c Cache) removeUnfinished(name string) {
	left, err := filepath.Glob(filepath.Join(c.Home.Build(), ".unfinished-"+name+"-*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}
