package images

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/hack/devcluster/machine"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
	"vignette.dev/vignette/hack/devcluster/store"
)

const (
	baseImage  = "localhost/debian:bookworm-slim"
	baseRecipe = "4"
	baseEpoch  = "1735689600" // files newer than this instant (2025-01-01) get its date
	imageForm  = "localhost/vignette/%s:dev"
	caBundle   = "/etc/ssl/certs/ca-certificates.crt"
)

// slimExclusions are also left out of Debian's own slim image.
var slimExclusions = []string{"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*"}

// aptLikeDocker makes apt delete packages after installation, as in Docker's own image.
// It removes the bootstrap's own options.
const aptLikeDocker = `rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap
cat > "$1"/etc/apt/apt.conf.d/docker-clean <<'END'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };
APT::Keep-Downloaded-Packages "false";
Acquire::Languages "none";
END`

// onDemand are groups of images for few users, test-vm those of a test. They are built on request, from a Containerfile each.
var onDemand = map[string][]string{"guest": {"guest", "guest-tools"}, "test-vm": {"guest", "guest-tools", "guest-debian"}}

// OnDemand returns a group's images, such as guest: those of virtual machines.
func OnDemand(group string) ([]string, error) {
	names, known := onDemand[group]
	if !known {
		return nil, fmt.Errorf("images %q: want one of %q", group, slices.Sorted(maps.Keys(onDemand)))
	}
	return names, nil
}

// Repository is the checkout with images/*/Dockerfile, or another folder that is the context of a Dockerfile.
type Repository struct {
	Root string
	Home store.Home
}

// Steps returns the steps that build the named images or groups, or all but those on demand; names are their final
// names.
func (r Repository) Steps(wanted, besides []string) (steps []progress.Step, names []string, err error) {
	files, err := filepath.Glob(filepath.Join(r.Root, "images", "*", "Dockerfile"))
	if err != nil {
		return nil, nil, err
	}
	available := map[string]string{}
	for _, file := range files {
		available[filepath.Base(filepath.Dir(file))] = file
	}
	if len(wanted) == 0 {
		for name := range available {
			wanted = append(wanted, name)
		}
		slices.Sort(wanted)
	}
	for _, name := range slices.Concat(slices.Collect(maps.Values(onDemand))...) {
		available[name] = filepath.Join(r.Root, "images", name, "Containerfile")
	}
	wanted = append(wanted, besides...)
	steps = r.BaseSteps()
	for _, name := range wanted {
		file, known := available[name]
		if !known {
			return nil, nil, fmt.Errorf("image %q: there is no images/%s/Dockerfile", name, name)
		}
		names = append(names, fmt.Sprintf(imageForm, name))
		steps = append(steps, progress.Step{Label: "build image " + name, Do: func(ctx context.Context, h *progress.Handle) error {
			return r.build(ctx, h, name, fmt.Sprintf(imageForm, name), file)
		}})
	}
	return steps, names, nil
}

// Step returns the step that builds an image from another Dockerfile in the repository's root.
func (r Repository) Step(name, image, dockerfile string) progress.Step {
	return progress.Step{Label: "build image " + name, Do: func(ctx context.Context, h *progress.Handle) error {
		return r.build(ctx, h, name, image, filepath.Join(r.Root, dockerfile))
	}}
}

// BaseSteps returns the steps that make the base image "debian:bookworm-slim" from Debian's packages.
func (r Repository) BaseSteps() []progress.Step {
	log := filepath.Join(r.Home.Logs(), "image-base.log")
	return []progress.Step{{Label: "make the Debian base image", Do: func(ctx context.Context, h *progress.Handle) error {
		if err := machine.Install(ctx, h, log, machine.ImagePackages); err != nil {
			return err
		}
		return r.makeBase(ctx, h, log)
	}}}
}

// record has the inputs of an image.
type record struct {
	Inputs string `json:"inputs"`
	ID     string `json:"id"`
}

func (r Repository) recordFile(name string) string {
	return filepath.Join(r.Home.Images(), name+".json")
}

// upToDate reports whether buildah still has, under this name, the image of these inputs.
func (r Repository) upToDate(ctx context.Context, name, image, inputs string) bool {
	data, err := os.ReadFile(r.recordFile(name))
	var made record
	if err != nil || json.Unmarshal(data, &made) != nil || made.Inputs != inputs {
		return false
	}
	there, err := ownStorage().find(ctx, image)
	return err == nil && there == made.ID
}

// remember writes the record of a new image, and removes the one it replaces.
func (r Repository) remember(ctx context.Context, name, image, inputs string) error {
	made, err := ownStorage().find(ctx, image)
	if err != nil {
		return err
	}
	var before record
	if data, err := os.ReadFile(r.recordFile(name)); err == nil && json.Unmarshal(data, &before) == nil && before.ID != made {
		// It may be in use, or deleted already: neither is an error.
		_, _ = run.Output(ctx, ownStorage().buildah("rmi", before.ID))
	}
	data, err := json.Marshal(record{Inputs: inputs, ID: made})
	if err != nil {
		return err
	}
	return store.WriteFile(r.recordFile(name), data, 0o644)
}

func (r Repository) makeBase(ctx context.Context, h *progress.Handle, log string) error {
	unlock, err := store.Lock(ctx, filepath.Join(r.Home.Images(), ".base.lock"), func() { h.Detail("waiting: another process makes it") })
	if err != nil {
		return err
	}
	defer unlock()
	if r.upToDate(ctx, "base", baseImage, baseRecipe) {
		h.Result("cached")
		return nil
	}
	_ = os.Remove(log)
	folder, err := os.MkdirTemp(r.Home.Images(), "base-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	rootfs := filepath.Join(folder, "rootfs.tar")
	arguments := []string{
		"--variant=minbase", "--format=tar",
		// Without these two the package usrmerge brings all of Perl.
		"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include=ca-certificates,usr-is-merged",
		`--aptopt=APT::Install-Recommends "false"`, "--customize-hook=" + aptLikeDocker,
	}
	for _, pattern := range slimExclusions {
		arguments = append(arguments, "--dpkgopt=path-exclude="+pattern)
	}
	err = run.Logged(ctx, log, run.Command{
		Name: "mmdebstrap", Args: append(arguments, "bookworm", rootfs),
		Env:    []string{"SOURCE_DATE_EPOCH=" + baseEpoch},
		OnLine: func(line string) { h.Detail("%s", line) },
	})
	if err != nil {
		return err
	}
	h.Detail("importing")
	dockerfile := filepath.Join(folder, "Dockerfile")
	if err := os.WriteFile(dockerfile, []byte("FROM scratch\nADD rootfs.tar /\nCMD [\"bash\"]\n"), 0o644); err != nil {
		return err
	}
	if err := buildahBuild(ctx, log, baseImage, dockerfile, folder); err != nil {
		return err
	}
	return r.remember(ctx, "base", baseImage, baseRecipe)
}

// buildahBuild builds an OCI image: into one in Docker's format buildah writes a
// random host name, so that it is never the same twice. It builds on
// the machine's own network: one of buildah's would leave a bridge and firewall
// rules behind.
func buildahBuild(ctx context.Context, log, image, dockerfile, folder string, more ...string) error {
	arguments := append([]string{
		"bud", "--format=oci", "--layers=false", "--pull-never", "--network=host", "--timestamp=0",
		"--tag", image, "--file", dockerfile,
	}, more...)
	return run.Logged(ctx, log, ownStorage().buildah(append(arguments, folder)...))
}

func (r Repository) build(ctx context.Context, h *progress.Handle, name, image, dockerfile string) error {
	unlock, err := store.Lock(ctx, filepath.Join(r.Home.Images(), "."+name+".lock"), func() { h.Detail("waiting: another process builds it") })
	if err != nil {
		return err
	}
	defer unlock()
	inputs, err := r.inputs(ctx, dockerfile)
	if err != nil {
		return fmt.Errorf("%s: %w", dockerfile, err)
	}
	if r.upToDate(ctx, name, image, inputs) {
		h.Result("unchanged")
		return nil
	}
	log := filepath.Join(r.Home.Logs(), "image-"+name+".log")
	_ = os.Remove(log)
	began := time.Now()
	if err := buildahBuild(ctx, log, image, dockerfile, r.Root, machineSettings()...); err != nil {
		return err
	}
	h.Result("built in %s", progress.Short(time.Since(began)))
	return r.remember(ctx, name, image, inputs)
}

// machineSettings passes this machine's certificates and pip settings to the
// build only: neither the image nor its history has them.
func machineSettings() []string {
	var arguments []string
	if _, err := os.Stat(caBundle); err == nil {
		arguments = append(arguments, "--volume", caBundle+":"+caBundle+":ro")
	}
	return arguments
}

// inputs returns the hash of all inputs of an image.
func (r Repository) inputs(ctx context.Context, dockerfile string) (string, error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", text)
	if strings.Contains(string(text), "bookworm-slim") {
		base, err := ownStorage().find(ctx, baseImage)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s\n", base)
	}
	for _, pattern := range copiedSources(string(text)) {
		paths, err := filepath.Glob(filepath.Join(r.Root, pattern))
		if err != nil {
			return "", err
		}
		if len(paths) == 0 {
			return "", fmt.Errorf("COPY %s: no such file in %s (programs in bin/ are built by \"make build\")", pattern, r.Root)
		}
		for _, path := range paths {
			if err := store.HashTree(h, r.Root, path); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// copiedSources returns the sources of a Dockerfile's COPY and ADD lines, without
// those that copy from another stage.
func copiedSources(dockerfile string) []string {
	var sources []string
	joined := strings.ReplaceAll(dockerfile, "\\\n", " ")
	for lines := bufio.NewScanner(strings.NewReader(joined)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !slices.Contains([]string{"COPY", "ADD"}, strings.ToUpper(fields[0])) {
			continue
		}
		fields = fields[1:]
		fromStage := false
		for len(fields) > 0 && strings.HasPrefix(fields[0], "--") {
			fromStage = fromStage || strings.HasPrefix(fields[0], "--from=")
			fields = fields[1:]
		}
		var list []string
		if strings.HasPrefix(strings.Join(fields, " "), "[") && json.Unmarshal([]byte(strings.Join(fields, " ")), &list) == nil {
			fields = list
		}
		if !fromStage && len(fields) > 1 {
			sources = append(sources, fields[:len(fields)-1]...)
		}
	}
	return sources
}
