package cli

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/environment"
	"vignette.dev/vignette/internal/runapi"
)

// environmentNow is what the user may read of the cluster, and a list of what is unknown.
func (c *cluster) environmentNow(ctx context.Context, platform string) (now *runapi.Environment, unknown []string) {
	now = &runapi.Environment{}
	version, err := c.kubernetesVersion()
	if err != nil {
		unknown = append(unknown, "the version of Kubernetes: "+oneLine(err.Error()))
	}
	now.Kubernetes = version
	var hosts corev1.NodeList
	if err := c.kube.List(ctx, &hosts); err != nil {
		unknown = append(unknown, "hosts: "+oneLine(err.Error()))
	}
	for i := range hosts.Items {
		now.Hosts = append(now.Hosts, environment.Host(&hosts.Items[i]))
	}
	var pods corev1.PodList
	if err := c.kube.List(ctx, &pods, client.InNamespace(platform), client.MatchingLabels(environment.PlatformLabels)); err != nil {
		unknown = append(unknown, "the platform's version and images: "+oneLine(err.Error()))
	}
	now.Platform, now.Images = environment.Platform(pods.Items)
	return now, unknown
}

func (c *cluster) kubernetesVersion() (string, error) {
	kubernetes, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return "", err
	}
	version, err := kubernetes.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}
