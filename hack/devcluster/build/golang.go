package build

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
)

// goBuild is one call of "go build": static, and the same bytes at any
// path of the source. Without DWARF the compiler needs a third less memory.
type goBuild struct {
	dir      string
	modfile  string
	ldflags  string
	out      string // a folder, ending in a slash
	packages []string
	// cgo: some packages call C. Go's own do not, so that a program is linked dynamically only if it calls a library.
	cgo bool
}

func (b goBuild) run(ctx context.Context, h *progress.Handle, log string) error {
	args := []string{"build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w " + b.ldflags, "-o", b.out}
	if b.modfile != "" {
		args = append(args, "-modfile="+b.modfile)
	}
	environment := goEnv()
	if b.cgo {
		args = append(args, "-tags=netgo,osusergo")
		environment = append(environment, "CGO_ENABLED=1")
	}
	compiled := 0
	return run.Logged(ctx, log, run.Command{
		Name: "go", Args: append(args, b.packages...), Dir: b.dir, Env: environment,
		OnLine: func(line string) {
			if strings.HasPrefix(line, "go: downloading") {
				h.Detail("%s", strings.TrimPrefix(line, "go: "))
				return
			}
			compiled++
			h.Detail("%d packages compiled", compiled)
		},
	})
}

// goEnv has no C, no user's workspace, and only the installed toolchain.
func goEnv() []string { return []string{"CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=local"} }

// moduleDir returns a module's folder in the module cache. It downloads the module if needed.
func moduleDir(ctx context.Context, dir, module, modfile string) (string, error) {
	args := []string{"mod", "download", "-json"}
	if modfile != "" {
		args = append(args, "-modfile="+modfile)
	}
	out, err := run.Output(ctx, run.Command{Name: "go", Args: append(args, module), Dir: dir, Env: goEnv()})
	if err != nil {
		return "", err
	}
	var found struct{ Dir, Error string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	}
	if found.Dir == "" {
		return "", fmt.Errorf("go mod download %s: no folder: %s", module, found.Error)
	}
	return found.Dir, nil
}
