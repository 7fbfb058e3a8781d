package render

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/credentials"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Volumes of the Secret. Brokers get all of it, their clients only the authority's certificate and the login.
const (
	brokerSecurity = "security"
	clientSecurity = "client-security"
	// securityMode lets the container's user read by the pod's group.
	securityMode = int32(0o440)
)

// SecurityName is the name of the Secret. It has the experiment's UID, because the operator reads no Secret's content and must not
// confuse it with that of an earlier experiment of the same name.
func SecurityName(e *v1alpha1.Experiment) string { return fmt.Sprintf("%s-security-%s", e.Name, e.UID) }

// SecuredBrokers are the names and radio addresses of the nodes that run brokers with security, in order.
func SecuredBrokers(t *topology.Topology) (hosts []string, addresses []netip.Addr) {
	for _, node := range t.Nodes {
		for _, name := range node.Apps {
			if app, _ := t.App(name); app.Security == nil {
				continue
			}
			hosts = append(hosts, node.Name)
			for _, a := range node.Attachments {
				hosts = append(hosts, networkHost(node, a.Network))
				addresses = append(addresses, a.Address.Addr())
			}
			break
		}
	}
	return hosts, addresses
}

// Secret has the given credentials. It is immutable, because all nodes must get the same.
func Secret(e *v1alpha1.Experiment, files map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: ownedMeta(e, SecurityName(e), labels(e)), Type: corev1.SecretTypeOpaque, Immutable: ptr.To(true), Data: files,
	}
}

// securityOf is the volume that a site's container mounts, empty if neither its app nor one of its brokers has security.
func securityOf(site apps.Site) string {
	if site.App.Security != nil {
		return brokerSecurity
	}
	for _, server := range append(append([]apps.Server{site.Broker}, site.Failover...), site.Servers...) {
		if server.App.Security != nil {
			return clientSecurity
		}
	}
	return ""
}

// addSecurity mounts the Secret in the containers of a pod whose sites, in the same order, need it.
func addSecurity(p *corev1.Pod, e *v1alpha1.Experiment, sites []apps.Site) {
	made := map[string]bool{}
	for i, site := range sites {
		volume := securityOf(site)
		if volume == "" {
			continue
		}
		c := &p.Spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: agentconfig.SecurityDir, ReadOnly: true})
		if !made[volume] {
			made[volume] = true
			p.Spec.Volumes = append(p.Spec.Volumes, securityVolume(e, volume))
		}
	}
}

func securityVolume(e *v1alpha1.Experiment, name string) corev1.Volume {
	source := &corev1.SecretVolumeSource{SecretName: SecurityName(e), DefaultMode: ptr.To(securityMode)}
	if name == clientSecurity {
		for _, file := range []string{credentials.CA, credentials.Username, credentials.Password} {
			source.Items = append(source.Items, corev1.KeyToPath{Key: file, Path: file})
		}
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: source}}
}
