// Command operator prints the manifest of KubeVirt's operator: its namespace, resource definition, permissions and deployment,
// as KubeVirt's own generator makes them.
//
//	operator CONTROL_IMAGE NODE_IMAGE VERSION
//
// KubeVirt has an image per program. Here two have all of them: CONTROL_IMAGE those that talk to the API server only, NODE_IMAGE those
// that work on a node, next to QEMU.
package main

import (
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
	"kubevirt.io/kubevirt/tools/util"
)

const namespace = "kubevirt"

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: operator CONTROL_IMAGE NODE_IMAGE VERSION")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func write(out io.Writer, controlImage, nodeImage, version string) error {
	definition, err := components.NewKubeVirtCrd()
	if err != nil {
		return err
	}
	objects := []any{
		&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				// virt-handler is privileged.
				Name: namespace, Labels: map[string]string{"kubevirt.io": "", "pod-security.kubernetes.io/enforce": "privileged"},
			},
		},
		definition,
		components.NewKubeVirtPriorityClassCR(),
	}
	for _, object := range rbac.GetAllOperator(namespace) {
		objects = append(objects, object)
	}
	const registry, prefix, verbosity, runbooks, unused = "localhost/devcluster", "", "2", "", ""
	deployment := components.NewOperatorDeployment(
		namespace, registry, prefix, version, verbosity, version, runbooks,
		controlImage, controlImage, nodeImage, nodeImage, // virt-api, virt-controller, virt-handler, virt-launcher
		unused, unused, unused, unused, unused, unused, // export, synchronization, libguestfs, pr-helper, side-cars
		controlImage, corev1.PullIfNotPresent)
	deployment.Spec.Replicas = new(int32(1))
	for _, object := range append(objects, runtime.Object(deployment)) {
		if err := util.MarshallObject(object, out); err != nil {
			return err
		}
	}
	return nil
}
