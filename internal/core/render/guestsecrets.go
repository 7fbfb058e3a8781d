package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/credentials"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// A virtual machine gets the Secrets of its apps as disks that KubeVirt creates, one for each Secret with all its keys as
// files. So neither the operator nor the guest's own disk has their values. The agent in the guest gives each app its own.

// maxGuestSecrets limits the Secrets of one machine.
const maxGuestSecrets = 16

var (
	clientFiles = []string{credentials.CA, credentials.Username, credentials.Password}
	brokerFiles = []string{credentials.CA, credentials.Cert, credentials.Key, credentials.Username, credentials.Password}
)

// ClientSecurityName is the name of the n-th Secret, from 0, for machines that have only clients of brokers with security.
func ClientSecurityName(e *v1alpha1.Experiment, n int) string {
	name := fmt.Sprintf("%s-client-security-%s", e.Name, e.UID)
	if n > 0 {
		name += fmt.Sprint("-", n)
	}
	return name
}

// ClientSecret has those of the given credentials that clients need.
func ClientSecret(e *v1alpha1.Experiment, n int, files map[string][]byte) *corev1.Secret {
	secret := Secret(e, map[string][]byte{})
	secret.Name = ClientSecurityName(e, n)
	for _, file := range clientFiles {
		secret.Data[file] = files[file]
	}
	return secret
}

// MachinesWithClients reports whether a virtual machine has clients of brokers with security, but no such broker itself.
func MachinesWithClients(in Input) bool {
	nodes := VMNodes(in.Topology)
	if len(nodes) == 0 {
		return false
	}
	sites := MakeSites(in)
	return slices.ContainsFunc(nodes, func(n topology.Node) bool { return securityOfNode(sites[n.Name]) == clientSecurity })
}

// securityOfNode is the volume that covers all of its apps, empty if none uses security.
func securityOfNode(sites []apps.Site) (security string) {
	for _, site := range sites {
		if of := securityOf(site); of != "" && security != brokerSecurity {
			security = of
		}
	}
	return security
}

// variableSecrets are the Secrets that a node's apps take variables from, each once.
func variableSecrets(t *topology.Topology, node topology.Node) (secrets []string) {
	for _, name := range node.Apps {
		app, _ := t.App(name)
		for _, variable := range app.Env {
			if variable.Secret != nil && !slices.Contains(secrets, variable.Secret.Name) {
				secrets = append(secrets, variable.Secret.Name)
			}
		}
	}
	return secrets
}

// guestSecrets are the Secrets of a machine's disks, in order. The first is that of brokers' security, if any.
func guestSecrets(in Input, node topology.Node, sites []apps.Site) (secrets []string) {
	switch securityOfNode(sites) {
	case brokerSecurity:
		secrets = append(secrets, SecurityName(in.Experiment))
	case clientSecurity:
		secrets = append(secrets, in.ClientSecurity)
	}
	return append(secrets, variableSecrets(in.Topology, node)...)
}

// addSecrets adds Secrets to a machine as disks. They come last, because images may depend on the order of disks.
func addSecrets(vm *kubevirtv1.VirtualMachineInstance, in Input, node topology.Node, sites []apps.Site) {
	bus := kubevirtv1.DiskBus(settingsOf(in, node).DiskBus)
	for i, secret := range guestSecrets(in, node, sites) {
		addDisk(vm, fmt.Sprint("secret-", i), bus, true, kubevirtv1.VolumeSource{
			Secret: &kubevirtv1.SecretVolumeSource{SecretName: secret, VolumeLabel: guestconfig.SecretLabel(i)},
		})
	}
}

// addSecretReferences configures where an app in a guest finds its values from Secrets.
func addSecretReferences(app *guestconfig.App, in Input, node topology.Node, sites []apps.Site, site apps.Site) {
	secrets := guestSecrets(in, node, sites)
	files := clientFiles
	switch securityOf(site) {
	case "":
		files = nil
	case brokerSecurity:
		files = brokerFiles
	}
	for _, file := range files {
		app.SecretFiles = append(app.SecretFiles, guestconfig.SecretFile{
			Path: agentconfig.SecurityDir + "/" + file, SecretKey: guestconfig.SecretKey{Disk: guestconfig.SecretLabel(0), Key: file},
		})
	}
	for _, variable := range site.App.Env {
		if variable.Secret == nil {
			continue
		}
		if app.SecretEnv == nil {
			app.SecretEnv = map[string]guestconfig.SecretKey{}
		}
		at := slices.Index(secrets, variable.Secret.Name)
		app.SecretEnv[variable.Name] = guestconfig.SecretKey{Disk: guestconfig.SecretLabel(at), Secret: variable.Secret.Name, Key: variable.Secret.Key}
	}
}

// checkGuestSecrets checks the number of Secrets, each of which is a disk of the machine.
func checkGuestSecrets(in Input, node topology.Node, path *field.Path) *field.Error {
	if secrets := variableSecrets(in.Topology, node); len(secrets) > maxGuestSecrets {
		return field.Invalid(path.Child("apps"), len(secrets),
			fmt.Sprintf("is how many Secrets the node's apps take variables from, each of which is a disk of the virtual machine: use %d at most, or make the node a pod", maxGuestSecrets))
	}
	return nil
}
