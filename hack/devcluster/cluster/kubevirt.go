package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/hack/devcluster/build"
	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/store"
)

const (
	kubeVirtNamespace = "kubevirt"
	kubeVirtWindow    = 5 * time.Minute
)

// kubeVirtWorkloads run in its namespace once its operator has made them.
var kubeVirtWorkloads = []string{"deployment/virt-operator", "deployment/virt-api", "deployment/virt-controller", "daemonset/virt-handler"}

func (c *Cluster) kubeVirtSteps() ([]progress.Step, error) {
	product := c.Products.KubeVirt()
	folder, err := c.Products.Cache.Path(product)
	if err != nil {
		return nil, err
	}
	repository := images.Repository{Root: folder, Home: c.Home}
	steps := append([]progress.Step{c.Products.Cache.Step(c.Products.KubeVirtPrograms()), c.Products.Cache.Step(product)}, repository.BaseSteps()...)
	steps = append(steps,
		repository.Step("kubevirt-control", build.KubeVirtControlImage, "control.Dockerfile"),
		repository.Step("kubevirt-node", build.KubeVirtNodeImage, "node.Dockerfile"))
	steps = append(steps, c.LoadSteps([]string{build.KubeVirtControlImage, build.KubeVirtNodeImage})...)
	return append(steps,
		progress.Step{Label: "apply KubeVirt's operator", Expect: 5 * time.Second, Do: func(ctx context.Context, h *progress.Handle) error {
			if err := store.Symlink(filepath.Join(folder, "bin", "virtctl"), filepath.Join(c.Bin(), "virtctl")); err != nil {
				return err
			}
			return c.applyFile(filepath.Join(folder, "kubevirt.yaml"))(ctx, h)
		}},
		progress.Step{Label: "apply KubeVirt, with hardware acceleration where it works", Expect: 5 * time.Second, Do: c.applyKubeVirt},
		progress.Step{Label: "wait for KubeVirt", Expect: 80 * time.Second, Do: c.waitForKubeVirt},
	), nil
}

func (c *Cluster) applyKubeVirt(ctx context.Context, h *progress.Handle) error {
	works, why, err := c.kvmWorks(ctx)
	if err != nil {
		return err
	}
	if works {
		h.Result("KVM")
	} else {
		reason, _, _ := strings.Cut(why, "\n")
		h.Result("software emulation: %s", reason)
	}
	return c.applyTemplate(ctx, "kubevirt.yaml", map[string]string{"Emulation": strconv.FormatBool(!works)})
}

// kvmWorks runs the program kvm-works in a pod with the image of virtual machines. All nodes are on one machine.
func (c *Cluster) kvmWorks(ctx context.Context) (works bool, why string, err error) {
	pod := []string{"-n", kubeVirtNamespace, "pod", "kvm-works"}
	remove := func() error {
		_, err := c.kubectl(ctx, append([]string{"delete", "--ignore-not-found", "--grace-period=0"}, pod...)...)
		return err
	}
	if err := remove(); err != nil {
		return false, "", err
	}
	if err := c.applyTemplate(ctx, "kvm-works.yaml", map[string]string{"NodeImage": build.KubeVirtNodeImage}); err != nil {
		return false, "", err
	}
	var found struct{ Status struct{ Phase string } }
	err = c.wait(ctx, readyWindow, 1, func() bool {
		return c.get(ctx, &found, pod...) == nil && (found.Status.Phase == "Succeeded" || found.Status.Phase == "Failed")
	})
	if err != nil {
		return false, "", fmt.Errorf("pod kvm-works: %w\n%s", err, c.describePods(ctx, kubeVirtNamespace))
	}
	why, err = c.kubectl(ctx, "-n", kubeVirtNamespace, "logs", "kvm-works")
	if err != nil {
		return false, "", err
	}
	return found.Status.Phase == "Succeeded", strings.TrimSpace(why), remove()
}

// waitForKubeVirt waits until the operator has deployed everything, and then for its deployments. State in the API server from
// before a node's start does not count.
func (c *Cluster) waitForKubeVirt(ctx context.Context, h *progress.Handle) error {
	var found struct{ Status struct{ Phase string } }
	err := c.wait(ctx, kubeVirtWindow, 1, func() bool {
		found.Status.Phase = "not there"
		ok := c.get(ctx, &found, "-n", kubeVirtNamespace, "kubevirt.kubevirt.io", "kubevirt") == nil
		h.Detail("%s", found.Status.Phase)
		return ok && found.Status.Phase == "Deployed"
	})
	if err != nil {
		return fmt.Errorf("KubeVirt is %q: %w\n%s", found.Status.Phase, err, c.describePods(ctx, kubeVirtNamespace))
	}
	if err := c.waitForRollouts(ctx, h, kubeVirtNamespace, kubeVirtWorkloads); err != nil {
		return err
	}
	if err := c.wait(ctx, readyWindow, 1, func() bool { return c.podsReady(ctx, kubeVirtNamespace) }); err != nil {
		return fmt.Errorf("KubeVirt: %w\n%s", err, c.describePods(ctx, kubeVirtNamespace))
	}
	return nil
}
