// Package build makes the programs and images that a cluster consists of,
// once: each product is cached under a hash of everything it is made from.
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

// Product is something that is built into a folder.
type Product struct {
	Name  string
	Label string
	// Expect is how long building it takes on a small machine with empty caches.
	Expect time.Duration
	// Recipe changes whenever the same inputs give another result.
	Recipe string
	// Inputs are the files and folders which it is made from.
	Inputs []string
	// Make builds into dir, with its output in the file log.
	Make func(ctx context.Context, h *progress.Handle, dir, log string) error
}

// Cache holds products.
type Cache struct {
	Home store.Home
}

// Key is the hash of all that the product is made from.
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

// Path is where the product lies, or will lie.
func (c Cache) Path(p Product) (string, error) {
	key, err := p.Key()
	if err != nil {
		return "", err
	}
	return filepath.Join(c.Home.Build(), p.Name+"-"+key), nil
}

// Has says whether the product is built.
func (c Cache) Has(p Product) bool {
	path, err := c.Path(p)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}

// Step is the step which builds the product, or finds it built.
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

// removeUnfinished removes what a killed build left; the product's lock is held.
func (c Cache) removeUnfinished(name string) {
	left, err := filepath.Glob(filepath.Join(c.Home.Build(), ".unfinished-"+name+"-*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}
