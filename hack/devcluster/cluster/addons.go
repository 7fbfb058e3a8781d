package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
)

// ArgoCD is the add-on of a cluster that is driven from a git repository.
const ArgoCD = "argocd"

// addOns that "up --with" knows.
var addOns = []string{ArgoCD}

const argoCDNamespace = "argocd"

// argoCDWorkloads run in its namespace.
var argoCDWorkloads = []string{
	"deployment/argocd-redis", "deployment/argocd-repo-server", "statefulset/argocd-application-controller",
	"deployment/argocd-applicationset-controller", "deployment/git",
}

// AddOnSteps are the steps which build an add-on and bring it to a cluster that is up. It stays there until its namespace is deleted.
func (c *Cluster) AddOnSteps(name string) ([]progress.Step, error) {
	if !slices.Contains(addOns, name) {
		return nil, fmt.Errorf("add-on %q: want one of %q", name, addOns)
	}
	product := c.Products.ArgoCD()
	folder, err := c.Products.Cache.Path(product)
	if err != nil {
		return nil, err
	}
	repository := images.Repository{Root: folder, Home: c.Home}
	build, image := repository.Step(name)
	steps := append([]progress.Step{c.Products.Cache.Step(product)}, repository.BaseSteps()...)
	steps = append(steps, build)
	steps = append(steps, c.LoadSteps([]string{image})...)
	return append(steps,
		progress.Step{Label: "apply Argo CD", Expect: 5 * time.Second, Do: func(ctx context.Context, _ *progress.Handle) error {
			return c.apply(ctx, run.Command{Args: []string{"-f", filepath.Join(folder, "argocd.yaml")}})
		}},
		progress.Step{Label: "wait for Argo CD", Expect: 20 * time.Second, Do: c.waitForArgoCD},
	), nil
}

func (c *Cluster) waitForArgoCD(ctx context.Context, h *progress.Handle) error {
	for _, workload := range argoCDWorkloads {
		h.Detail("%s", workload)
		_, err := c.kubectl(ctx, "-n", argoCDNamespace, "rollout", "status", workload, "--timeout="+readyWindow.String())
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", workload, err, c.describePods(ctx, argoCDNamespace))
		}
	}
	return nil
}
