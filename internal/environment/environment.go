// Package environment finds the part of a run record that a spec cannot define, in objects of a cluster, and compares two of them.
// The operator records it when a run starts; the command line compares it before a rerun.
package environment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/runapi"
)

// PlatformLabels are on every pod of the chart.
var PlatformLabels = map[string]string{"app.kubernetes.io/part-of": "vignette"}

const (
	labelName    = "app.kubernetes.io/name"
	labelVersion = "app.kubernetes.io/version"
	labelChart   = "helm.sh/chart"
	// programPrefix begins the names of the platform's programs.
	programPrefix = "vignette-"
	radiod        = "radiod"
)

// Host is the cluster's information about one of its nodes.
func Host(node *corev1.Node) runapi.Host {
	info := node.Status.NodeInfo
	return runapi.Host{
		Name: node.Name, Kernel: info.KernelVersion, OS: info.OSImage, Architecture: info.Architecture, BootID: info.BootID,
		CPUs: node.Status.Capacity.Cpu().Value(), MemoryBytes: node.Status.Capacity.Memory().Value(),
		Kubelet: info.KubeletVersion, ContainerRuntime: info.ContainerRuntimeVersion,
	}
}

// Platform is read from the pods of the platform's namespace: versions from the operator's labels, and the pods' images.
func Platform(pods []corev1.Pod) (platform runapi.Platform, images []runapi.Image) {
	for i := range pods {
		pod := &pods[i]
		name, ours := strings.CutPrefix(pod.Labels[labelName], programPrefix)
		if !ours || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if name == "operator" {
			platform.Version, platform.Chart = pod.Labels[labelVersion], pod.Labels[labelChart]
		}
		for _, status := range pod.Status.ContainerStatuses {
			image := runapi.Image{Container: status.Name, Image: status.Image, ID: imageID(status)}
			if name == radiod {
				image.Host = pod.Spec.NodeName
			}
			if image.ID != "" {
				images = append(images, image)
			}
		}
	}
	return platform, images
}

// imageID without the scheme that some runtimes add.
func imageID(status corev1.ContainerStatus) string {
	_, id, found := strings.Cut(status.ImageID, "://")
	if !found {
		return status.ImageID
	}
	return id
}

// Containers are the images of a node's containers, as far as they are known.
func Containers(node string, pod *corev1.Pod) (images []runapi.Image) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if id := imageID(status); id != "" {
			images = append(images, runapi.Image{Node: node, Container: status.Name, Image: status.Image, ID: id})
		}
	}
	return images
}

// Differences between a recorded environment and the present one. Values that one of them lacks are left out.
func Differences(before, now *runapi.Environment) (found []runapi.Difference) {
	c := comparison{}
	c.compareText("platform: version", before.Platform.Version, now.Platform.Version)
	c.compareText("platform: chart", before.Platform.Chart, now.Platform.Chart)
	c.compareText("platform: operator's revision", before.Platform.Operator, now.Platform.Operator)
	c.compareText("Kubernetes", before.Kubernetes, now.Kubernetes)
	if len(now.Hosts) > 0 {
		for _, host := range before.Hosts {
			c.compareHost(host, now.Hosts)
		}
	}
	for _, image := range before.Images {
		if image.Node == "" {
			c.compareImage(image, now.Images)
		}
	}
	return c.found
}

// Absent stands for something that no longer exists.
const Absent = "not there"

type comparison struct{ found []runapi.Difference }

func (c *comparison) compareText(what, before, now string) {
	if before != "" && now != "" && before != now {
		c.found = append(c.found, runapi.Difference{What: what, Before: before, Now: now})
	}
}

func (c *comparison) compareHost(before runapi.Host, hosts []runapi.Host) {
	what := "host " + before.Name
	for _, now := range hosts {
		if now.Name != before.Name {
			continue
		}
		c.compareText(what+": kernel", before.Kernel, now.Kernel)
		c.compareText(what+": operating system", before.OS, now.OS)
		c.compareText(what+": architecture", before.Architecture, now.Architecture)
		c.compareText(what+": processors", formatNumber(before.CPUs), formatNumber(now.CPUs))
		c.compareText(what+": processor", before.CPUModel, now.CPUModel)
		c.compareText(what+": TCP congestion control", before.TCPCongestionControl, now.TCPCongestionControl)
		c.compareText(what+": memory", gibibytes(before.MemoryBytes), gibibytes(now.MemoryBytes))
		c.compareText(what+": boot", before.BootID, now.BootID)
		c.compareText(what+": kubelet", before.Kubelet, now.Kubelet)
		c.compareText(what+": container runtime", before.ContainerRuntime, now.ContainerRuntime)
		return
	}
	c.compareText(what, "there", Absent)
}

// compareImage of a part of the platform; one that is not running now, such as a pod of the workflow, cannot be compared.
func (c *comparison) compareImage(before runapi.Image, images []runapi.Image) {
	what := "image of " + before.Container
	if before.Host != "" {
		what += " on host " + before.Host
	}
	for _, now := range images {
		if now.Node == "" && now.Container == before.Container && now.Host == before.Host {
			c.compareText(what, before.ID, now.ID)
			return
		}
	}
}

func formatNumber(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// gibibytes rounds, as the exact value differs between boots.
func gibibytes(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
