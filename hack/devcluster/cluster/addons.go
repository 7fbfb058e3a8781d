package cluster

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"text/template"
	"time"

	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
)

//go:embed addons
var addOnFiles embed.FS

// The add-ons: ArgoCD to operate a cluster from a git repository, KubeVirt for virtual machines.
const (
	ArgoCD   = "argocd"
	KubeVirt = "kubevirt"
)

// addOns are the names for "up --with".
var addOns = map[string]func(*Cluster) ([]progress.Step, error){ArgoCD: (*Cluster).argoCDSteps, KubeVirt: (*Cluster).kubeVirtSteps}

const argoCDNamespace = "argocd"

// argoCDWorkloads run in Argo CD's namespace.
var argoCDWorkloads = []string{
	"deployment/argocd-redis", "deployment/argocd-repo-server", "statefulset/argocd-application-controller",
	"deployment/argocd-applicationset-controller", "deployment/git",
}

// AddOnSteps returns the steps that build add-ons and install them in a running cluster. They stay until their namespace is deleted.
func (c *Cluster) AddOnSteps(names []string) ([]progress.Step, error) {
	var steps []progress.Step
	for _, name := range names {
		of, known := addOns[name]
		if !known {
			return nil, fmt.Errorf("add-on %q: want one of %q", name, slices.Sorted(maps.Keys(addOns)))
		}
		more, err := of(c)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

func (c *Cluster) argoCDSteps() ([]progress.Step, error) {
	product := c.Products.ArgoCD()
	folder, err := c.Products.Cache.Path(product)
	if err != nil {
		return nil, err
	}
	const image = "localhost/vignette/argocd:dev"
	repository := images.Repository{Root: folder, Home: c.Home}
	steps := append([]progress.Step{c.Products.Cache.Step(product)}, repository.BaseSteps()...)
	steps = append(steps, repository.Step(ArgoCD, image, "Dockerfile"))
	steps = append(steps, c.LoadSteps([]string{image})...)
	return append(steps,
		progress.Step{Label: "apply Argo CD", Expect: 5 * time.Second, Do: c.applyFile(filepath.Join(folder, "argocd.yaml"))},
		progress.Step{Label: "wait for Argo CD", Expect: 20 * time.Second, Do: func(ctx context.Context, h *progress.Handle) error {
			return c.waitForRollouts(ctx, h, argoCDNamespace, argoCDWorkloads)
		}},
	), nil
}

// applyFile returns a step's function that applies a manifest.
func (c *Cluster) applyFile(manifest string) func(context.Context, *progress.Handle) error {
	return func(ctx context.Context, _ *progress.Handle) error {
		return c.apply(ctx, run.Command{Args: []string{"-f", manifest}})
	}
}

// applyTemplate applies one of the add-ons' own manifests.
func (c *Cluster) applyTemplate(ctx context.Context, name string, values map[string]string) error {
	text, err := addOnManifest(name, values)
	if err != nil {
		return err
	}
	return c.apply(ctx, run.Command{Args: []string{"-f", "-"}, Stdin: bytes.NewReader(text)})
}

func addOnManifest(name string, values map[string]string) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(addOnFiles, "addons/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// waitForRollouts waits until a namespace's workloads are complete.
func (c *Cluster) waitForRollouts(ctx context.Context, h *progress.Handle, namespace string, workloads []string) error {
	for _, workload := range workloads {
		h.Detail("%s", workload)
		_, err := c.kubectl(ctx, "-n", namespace, "rollout", "status", workload, "--timeout="+readyWindow.String())
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", workload, err, c.describePods(ctx, namespace))
		}
	}
	return nil
}
