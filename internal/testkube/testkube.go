// Package testkube gives tests and benchmarks a real Kubernetes API server: etcd and kube-apiserver on the
// loopback interface, with the CRDs of /crds, and of Argo and Multus as far as the tests need them.
// Nothing schedules or runs pods there; tests play the kubelet's part.
package testkube

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// BinEnv names a file `kubelab`, or the folder that has it.
const BinEnv = "VIGNETTE_KUBE_BIN"

// Start an API server for one test; it ends with the test. Without the binary the test is skipped.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	binary := Binary()
	if binary == "" {
		t.Skip(NoBinary)
	}
	environment, err := Environment(binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start %s: %v", binary, err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	config.QPS, config.Burst = -1, 0
	return config
}

// NoBinary says what to do where Binary finds none.
const NoBinary = "no kubelab binary: set " + BinEnv + ", or build it with `hack/cluster up`"

// Environment of an API server that is to be started, and stopped, by the caller. It is run by the given binary, through links that are
// made in the folder assets.
func Environment(binary, assets string) (*envtest.Environment, error) {
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(binary, filepath.Join(assets, name)); err != nil {
			return nil, err
		}
	}
	crds, err := definitions()
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, CRDs: crds, Scheme: Scheme(),
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	// Nobody reads the data after a crash, and syncing takes most of a write's time.
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	return environment, nil
}

// Scheme of all typed objects that the platform uses.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, nadv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two packages register one kind: a mistake in this program
		}
	}
	return scheme
}

// Binary of all Kubernetes programs: that of BinEnv, or the newest that the developer cluster has built; empty for none.
func Binary() string {
	if given := os.Getenv(BinEnv); given != "" {
		if info, err := os.Stat(given); err == nil && info.IsDir() {
			given = filepath.Join(given, "kubelab")
		}
		return given
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return newest(filepath.Join(cache, "vignette", "build", "kubernetes-*", "kubelab"))
}

func newest(pattern string) (path string) {
	var at time.Time
	matches, _ := filepath.Glob(pattern)
	for _, match := range matches {
		if info, err := os.Stat(match); err == nil && info.ModTime().After(at) {
			path, at = match, info.ModTime()
		}
	}
	return path
}

func definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	found := []*apiextensionsv1.CustomResourceDefinition{
		foreign("argoproj.io", "v1alpha1", "Workflow", "workflows"),
		foreign("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances"),
		foreign("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions"),
	}
	err := fs.WalkDir(crds.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := crds.Files.ReadFile(path)
		if err != nil {
			return err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		found = append(found, definition)
		return yaml.Unmarshal(text, definition)
	})
	return found, err
}

// foreign is a definition that takes anything; like Argo's own it has no status subresource.
func foreign(group, version, kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}
