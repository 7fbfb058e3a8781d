package console

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
)

// operatorName is the operator's Deployment in the platform's namespace.
const operatorName = "vignette-operator"

// memoryLimit is the operator's for apps without one: as configured, else as its Deployment says, else the default.
func (c *Console) memoryLimit(ctx context.Context, kube client.Reader) resource.Quantity {
	if c.config.MemoryLimit != nil {
		return *c.config.MemoryLimit
	}
	var operator appsv1.Deployment
	if kube.Get(ctx, client.ObjectKey{Namespace: c.config.PlatformNamespace, Name: operatorName}, &operator) == nil {
		for _, container := range operator.Spec.Template.Spec.Containers {
			if limit, found := limitIn(container.Args); found {
				return limit
			}
		}
	}
	return resource.MustParse(render.DefaultMemoryLimit)
}

// limitIn the operator's arguments.
func limitIn(args []string) (limit resource.Quantity, found bool) {
	for i, arg := range args {
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != render.MemoryLimitFlag {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		limit, err := resource.ParseQuantity(value)
		return limit, err == nil
	}
	return limit, false
}
