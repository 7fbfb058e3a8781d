package cluster

import (
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/hack/devcluster/build"
	"vignette.dev/vignette/hack/devcluster/store"
)

func addOnLabels(t *testing.T, names ...string) []string {
	t.Helper()
	c, err := Open(store.Home(t.TempDir()), "test", "..")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := c.AddOnSteps(names)
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, step := range steps {
		labels = append(labels, step.Label)
	}
	return labels
}

func TestAnUnknownAddOnIsRefusedByNameBeforeAnythingIsBuilt(t *testing.T) {
	c, err := Open(store.Home(t.TempDir()), "test", "..")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.AddOnSteps([]string{KubeVirt, "kubvirt"})
	if err == nil || !strings.Contains(err.Error(), `add-on "kubvirt": want one of ["argocd" "kubevirt"]`) {
		t.Errorf("error %v", err)
	}
}

func TestKubeVirtsImagesAreOnTheNodesBeforeItsOperatorAndTheResourceComesLast(t *testing.T) {
	got := addOnLabels(t, KubeVirt)
	want := []string{
		"build KubeVirt", "gather what KubeVirt's images are made from", "make the Debian base image", "build image kubevirt-control", "build image kubevirt-node",
		"load " + build.KubeVirtControlImage, "load " + build.KubeVirtNodeImage,
		"apply KubeVirt's operator", "apply KubeVirt, with hardware acceleration where it works", "wait for KubeVirt",
	}
	if !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestAddOnsComeInTheOrderInWhichTheyWereAskedFor(t *testing.T) {
	got := addOnLabels(t, ArgoCD, KubeVirt)
	if want := append(addOnLabels(t, ArgoCD), addOnLabels(t, KubeVirt)...); !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestKubeVirtEmulatesOnlyWhereAccelerationDoesNotWork(t *testing.T) {
	for _, emulation := range []string{"true", "false"} {
		text, err := addOnManifest("kubevirt.yaml", map[string]string{"Emulation": emulation})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"useEmulation: " + emulation + "\n",
			"network: {binding: {vignette-radio: {domainAttachmentType: tap}}}",
			"runtimeDefaultProfile: true",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	if _, err := addOnManifest("kubevirt.yaml", nil); err == nil {
		t.Error("a manifest was made without knowing whether acceleration works")
	}
}

func TestAccelerationIsTriedInTheImageThatVirtualMachinesRunIn(t *testing.T) {
	text, err := addOnManifest("kvm-works.yaml", map[string]string{"NodeImage": build.KubeVirtNodeImage})
	if err != nil || !strings.Contains(string(text), "image: "+build.KubeVirtNodeImage+"\n") {
		t.Errorf("error %v, manifest\n%s", err, text)
	}
}
