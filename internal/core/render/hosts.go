package render

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/core/topology"
)

// The hosts file of every container has the names of nodes: hq is its address on a shared network, hq.vhf that on network
// vhf. Containers of apps mount the platform's file, because the kubelet's has the pod's address for the node's own name.
// Others, such as the toolbox, have the kubelet's.

const (
	hostsPath       = "/etc/hosts"
	hostsVolume     = "hosts"
	hostsAnnotation = "vignette.dev/hosts"
)

// networkHost is the name of a node's address on a network.
func networkHost(node topology.Node, network string) string { return node.Name + "." + network }

// addHosts mounts the hosts file in the pod's containers. A node without radios keeps the kubelet's.
func addHosts(p *corev1.Pod, node topology.Node) {
	if len(node.Attachments) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, alias := range p.Spec.HostAliases {
		fmt.Fprintf(&b, "%s %s\n", alias.IP, strings.Join(alias.Hostnames, " "))
	}
	p.Annotations[hostsAnnotation] = b.String()
	p.Spec.Volumes = append(p.Spec.Volumes, annotationVolume(hostsVolume, hostsAnnotation))
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, contentMount(hostsVolume, hostsPath))
	}
}
