//go:build e2e

// Package e2e has the tests that need a complete cluster with the platform installed: real kubelet,
// containerd, Multus, Argo Workflows, radiod, Mosquitto. `make test` prepares it and runs them.
package e2e

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// platformNamespace is the chart's namespace.
const platformNamespace = "vignette-system"

var (
	kube       client.Client
	restConfig *rest.Config
	testScheme = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	if err := connect(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\nRun `make test-e2e`, or set KUBECONFIG to a cluster with the platform installed.\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect() (err error) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := clientgoscheme.AddToScheme(testScheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(testScheme); err != nil {
		return err
	}
	if restConfig, err = ctrl.GetConfig(); err != nil {
		return err
	}
	restConfig.QPS, restConfig.Burst = 50, 100
	if kube, err = client.New(restConfig, client.Options{Scheme: testScheme}); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := kube.List(ctrl.SetupSignalHandler(), &pods, client.InNamespace(platformNamespace)); err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("no pods in namespace %s: the platform is not installed", platformNamespace)
	}
	return nil
}
