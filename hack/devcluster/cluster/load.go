package cluster

import (
	"context"
	"fmt"
	"os"

	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/progress"
)

// LoadSteps returns the steps that load images on all nodes: names in buildah's
// storage, or files as "docker save" writes them.
func (c *Cluster) LoadSteps(wanted []string) []progress.Step {
	var steps []progress.Step
	for _, image := range wanted {
		steps = append(steps, progress.Step{Label: "load " + image, Do: func(ctx context.Context, h *progress.Handle) error {
			nodes, err := c.imageNodes()
			if err != nil {
				return err
			}
			loaded, err := c.loadOne(ctx, h, nodes, image)
			if err != nil {
				return err
			}
			h.Result("%d loaded, %d there already", loaded, len(nodes)-loaded)
			return nil
		}})
	}
	return steps
}

func (c *Cluster) loadOne(ctx context.Context, h *progress.Handle, nodes []images.Node, image string) (loaded int, err error) {
	archive, identity := image, images.Identity{}
	if info, err := os.Stat(image); err == nil && info.Mode().IsRegular() {
		if identity, err = images.ReadIdentity(archive); err != nil {
			return 0, err
		}
	} else {
		built, err := images.Find(ctx, image)
		if err != nil {
			return 0, err
		}
		identity = built.Identity
		if nodes, err = without(ctx, nodes, identity); err != nil || len(nodes) == 0 {
			return 0, err
		}
		h.Detail("exporting")
		var remove func()
		if archive, remove, err = built.Export(ctx, c.Home, c.log("load")); err != nil {
			return 0, err
		}
		defer remove()
	}
	for _, node := range nodes {
		h.Detail("%s", node.Name)
		done, err := node.Load(ctx, archive, identity, c.log("load"))
		if err != nil {
			return loaded, fmt.Errorf("node %s: %w", node.Name, err)
		}
		if done {
			loaded++
		}
	}
	return loaded, nil
}

// without returns the nodes which lack the image.
func without(ctx context.Context, nodes []images.Node, image images.Identity) ([]images.Node, error) {
	var lacking []images.Node
	for _, node := range nodes {
		has, err := node.Has(ctx, image)
		if err != nil {
			return nil, err
		}
		if !has {
			lacking = append(lacking, node)
		}
	}
	return lacking, nil
}
