package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/experiment/credentials"
	"vignette.dev/vignette/operators/experiment/topology"
)

// What apps of a virtual machine take from Secrets comes to it on disks that KubeVirt makes, one of each Secret with all its keys as files: the
// operator reads none of their values, and the guest's own disk has none of their values. The agent in the guest gives each app what is its own.

// maxGuestSecrets of one machine.
const maxGuestSecrets = 16

var (
	clientFiles = []string{credentials.CA, credentials.Username, credentials.Password}
	brokerFiles = []string{credentials.CA, credentials.Cert, credentials.Key, credentials.Username, credentials.Password}
)

// ClientSecurityName of the Secret for machines with nothing but clients of brokers with security: its n-th making, from 0.
func ClientSecurityName(e *v1alpha1.Experiment, n int) string {
	name := fmt.Sprintf("%s-client-security-%s", e.Name, e.UID)
	if n > 0 {
		name += fmt.Sprint("-", n)
	}
	return name
}

// ClientSecret has of the given credentials what clients need.
func ClientSecret(e *v1alpha1.Experiment, n int, files map[string][]byte) *corev1.Secret {
	secret := Secret(e, map[string][]byte{})
	secret.Name = ClientSecurityName(e, n)
	for _, file := range clientFiles {
		secret.Data[file] = files[file]
	}
	return secret
}

// MachinesWithClients tells whether a virtual machine has clients of brokers with security, and no such broker itself.
func MachinesWithClients(in Input) bool {
	nodes := VMNodes(in.Topology)
	if len(nodes) == 0 {
		return false
	}
	sites := MakeSites(in)
	return slices.ContainsFunc(nodes, func(n topology.Node) bool { return securityOfNode(sites[n.Name]) == clientSecurity })
}

// securityOfNode is what its apps need between them; none where nothing has to do with security.
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

// guestSecrets of a machine are the Secrets whose disks it has, in their order: the first is that of brokers' security, where there is any.
func guestSecrets(in Input, node topology.Node, sites []apps.Site) (secrets []string) {
	switch securityOfNode(sites) {
	case brokerSecurity:
		secrets = append(secrets, SecurityName(in.Experiment))
	case clientSecurity:
		secrets = append(secrets, in.ClientSecurity)
	}
	return append(secrets, variableSecrets(in.Topology, node)...)
}

// addSecrets to a machine, each as a disk. They come last, as images may tell disks by their order.
func addSecrets(vm *kubevirtv1.VirtualMachineInstance, in Input, node topology.Node, sites []apps.Site) {
	bus := kubevirtv1.DiskBus(settingsOf(in, node).DiskBus)
	for i, secret := range guestSecrets(in, node, sites) {
		addDisk(vm, fmt.Sprint("secret-", i), bus, true, kubevirtv1.VolumeSource{
			Secret: &kubevirtv1.SecretVolumeSource{SecretName: secret, VolumeLabel: guestconfig.SecretLabel(i)},
		})
	}
}

// addSecretReferences says where an app in a guest finds what it takes from Secrets.
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

// checkGuestSecrets says whether a machine can have so many disks.
func checkGuestSecrets(in Input, node topology.Node, path *field.Path) *field.Error {
	if secrets := variableSecrets(in.Topology, node); len(secrets) > maxGuestSecrets {
		return field.Invalid(path.Child("apps"), len(secrets),
			fmt.Sprintf("is how many Secrets the node's apps take variables from, each of which is a disk of the virtual machine: want %d at most, or the node to be a pod", maxGuestSecrets))
	}
	return nil
}
