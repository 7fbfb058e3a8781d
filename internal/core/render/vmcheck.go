package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

var (
	// guestOverhead is the memory of a guest itself, without its apps.
	guestOverhead = resource.MustParse("128Mi")
	// platformGuestMemory is the minimum memory of the platform's guest.
	platformGuestMemory = resource.MustParse("256Mi")
)

// CheckVMs finds what virtual machines do not support: apps that no guest can run or that do not fit, radios that do not work
// in a guest, and files too large for its disk. The topology's references must be valid. Unknown templates are ignored.
func CheckVMs(in Input) (errs field.ErrorList) {
	if len(VMNodes(in.Topology)) == 0 {
		return nil
	}
	e := *in.Experiment // without a cluster it has no UID, and there is no server
	e.UID, in.Options.ServerURL = cmp.Or(e.UID, "uid"), cmp.Or(in.Options.ServerURL, "http://server")
	in.Experiment = &e
	sites := MakeSites(in)
	for i, spec := range in.Experiment.Spec.Nodes {
		at := slices.IndexFunc(in.Topology.Nodes, func(n topology.Node) bool { return n.Template == spec.Name })
		if spec.Runtime != v1alpha1.RuntimeVM || at < 0 {
			continue
		}
		node := in.Topology.Nodes[at]
		path := field.NewPath("spec", "nodes").Index(i)
		errs = append(errs, checkGuestRadios(in, node, path)...)
		for j, site := range sites[node.Name] {
			if err := checkGuestApp(site, path.Child("apps").Index(j)); err != nil {
				errs = append(errs, err)
			}
		}
		if err := checkGuestSecrets(in, node, path); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, checkGuestSize(in, node, sites[node.Name], path)...)
		errs = append(errs, checkGuestProvisioning(in, node, path.Child("vm"))...)
		if len(errs) > 0 {
			continue
		}
		if _, err := guestconfig.Encode(Guest(in, node, sites[node.Name], nil)); err != nil {
			errs = append(errs, field.Invalid(path, node.Name, err.Error()))
		}
	}
	return errs
}

func checkGuestRadios(in Input, node topology.Node, path *field.Path) (errs field.ErrorList) {
	for j, a := range node.Attachments {
		if network, _ := networkOf(in.Experiment, a.Network); network.Engine == v1alpha1.EngineEMANE {
			errs = append(errs, field.Invalid(path.Child("networks").Index(j), a.Network, "has engine emane, which supports only pods: use engine native, or make the node a pod"))
		}
	}
	return errs
}

func checkGuestApp(site apps.Site, path *field.Path) *field.Error {
	app := site.App
	switch tools := toolsOf(site); {
	case app.Own() && app.Image != "":
		return field.Invalid(path, app.Name, "brings an image, and images do not run in a virtual machine: leave out its image if its command is a program of the guest, or make the node a pod")
	case !app.Own() && !onToolsDisk[tools]:
		return field.Invalid(path, app.Name, fmt.Sprintf("is a %s, which the platform has only for pods: make the node a pod, or run the guest's own by a command without image", KindOf(app).Name()))
	}
	return nil
}

// checkGuestProvisioning finds the errors of a guest's cloud-init, Ignition and SSH keys.
func checkGuestProvisioning(in Input, node topology.Node, path *field.Path) (errs field.ErrorList) {
	spec := settingsOf(in, node)
	errs = checkImage(spec.Image, path.Child("image"))
	if err := checkIgnition(node, spec); err != nil {
		errs = append(errs, field.Invalid(path.Child("ignition"), field.OmitValueType{}, err.Error()))
	}
	adds := node.HasAgent() || len(spec.SSHKeys) > 0 // a part to the user's data
	if given := ptr.Deref(spec.CloudInit, v1alpha1.CloudInit{}).UserData; given != "" && adds && contentType(given) == unknownContent {
		errs = append(errs, field.Invalid(path.Child("cloudInit", "userData"), wording.Shorten(strings.SplitN(given, "\n", 2)[0], 60),
			"is its first line, by which cloud-init would leave it out: want one such as #cloud-config or #!/bin/sh"))
	}
	known := spec.OwnDisk() || spec.Template == "" // whether its root disk is known
	if len(spec.SSHKeys) > 0 && !node.HasAgent() && known && UserData(in, node) == "" {
		errs = append(errs, field.Invalid(path.Child("sshKeys"), len(spec.SSHKeys),
			"without agent only cloud-init with inline user data can give them to a guest: add them where the guest is set up, and leave them out here"))
	}
	return errs
}

// checkGuestSize checks whether the apps' requests fit the machine.
func checkGuestSize(in Input, node topology.Node, sites []apps.Site, path *field.Path) (errs field.ErrorList) {
	spec := settingsOf(in, node)
	memory, vm := spec.Memory.Quantity(), path.Child("vm")
	if !spec.OwnDisk() && spec.Template == "" && memory.Cmp(platformGuestMemory) < 0 {
		return field.ErrorList{field.Invalid(vm.Child("memory"), memory.String(), "the platform's own guest needs "+platformGuestMemory.String()+" or more")}
	}
	needs, cpu := guestOverhead.DeepCopy(), resource.Quantity{}
	var names []string
	for _, site := range sites {
		if site.App.Resources == nil {
			continue
		}
		names = append(names, site.App.Name)
		requests := site.App.Resources.Requests
		needs.Add(requests[corev1.ResourceMemory])
		cpu.Add(requests[corev1.ResourceCPU])
	}
	if needs.Cmp(memory) > 0 {
		errs = append(errs, field.Invalid(vm.Child("memory"), memory.String(),
			fmt.Sprintf("%s request, with %s for the guest itself, %s: give the machine so much", strings.Join(names, ", "), guestOverhead.String(), needs.String())))
	}
	if cores := *resource.NewQuantity(int64(spec.Cores), resource.DecimalSI); cpu.Cmp(cores) > 0 {
		errs = append(errs, field.Invalid(vm.Child("cores"), spec.Cores, fmt.Sprintf("%s request %s processors: give the machine so many cores", strings.Join(names, ", "), cpu.String())))
	}
	return errs
}
