// Package testkube gives tests and benchmarks a real Kubernetes API server: etcd and kube-apiserver on the loopback interface, with the
// CRDs of /crds, and of Argo and Multus as far as tests need them. It schedules and runs no pods; tests play the kubelet's part.
package testkube

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// BinEnv is the environment variable with the path of the binary `kubelab`, or of its folder.
const BinEnv = "VIGNETTE_KUBE_BIN"

// Start an API server for one test; it ends with the test. Without the binary the test is skipped.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	own := &Shared{}
	config := own.Start(t)
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return config
}

// Shared is one API server for several tests of a package, each with namespaces of its own: starting one takes seconds.
type Shared struct {
	// WithoutRules leaves out the validation rules of the CRDs. The server evaluates all of them at each write of a status.
	WithoutRules bool

	mu          sync.Mutex
	assets      string
	environment *envtest.Environment
	config      *rest.Config
}

// Start the API server unless it is up. It ends with Stop, which TestMain calls. Without the binary the test is skipped.
func (s *Shared) Start(t testing.TB) *rest.Config {
	t.Helper()
	binary := Binary()
	if binary == "" {
		t.Skip(NoBinaryHint)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config == nil {
		if err := s.start(binary); err != nil {
			t.Fatalf("start %s: %v", binary, err)
		}
	}
	return rest.CopyConfig(s.config)
}

func (s *Shared) start(binary string) (err error) {
	if s.assets, err = os.MkdirTemp("", "testkube-"); err != nil {
		return err
	}
	if s.environment, err = Environment(binary, s.assets); err != nil {
		return err
	}
	if s.WithoutRules {
		removeRules(s.environment.CRDs)
	}
	config, err := s.environment.Start()
	if err != nil {
		return errors.Join(err, s.environment.Stop())
	}
	config.QPS, config.Burst = -1, 0
	s.config = config
	return nil
}

// Stop the API server, if it is up.
func (s *Shared) Stop() error {
	if s.config == nil {
		return os.RemoveAll(s.assets)
	}
	return errors.Join(s.environment.Stop(), os.RemoveAll(s.assets))
}

// NoBinaryHint says what to do if Binary finds none.
const NoBinaryHint = "no kubelab binary: set " + BinEnv + ", or build it with `hack/cluster up`"

// Environment of an API server that the caller starts and stops. The given binary runs it, through links in the folder assets.
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
	// The data need not survive a crash, and syncing takes most of a write's time.
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	return environment, nil
}

// Scheme of all typed objects that the platform uses, and no others: at each write the fake client makes a map of the entire scheme.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, nadv1.AddToScheme, policyv1.AddToScheme,
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
		foreignDefinition("argoproj.io", "v1alpha1", "Workflow", "workflows"),
		foreignDefinition("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances"),
		foreignDefinition("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions"),
	}
	own, err := crds.Definitions()
	return append(found, own...), err
}

func removeRules(definitions []*apiextensionsv1.CustomResourceDefinition) {
	for _, d := range definitions {
		for _, version := range d.Spec.Versions {
			removeRulesOf(version.Schema.OpenAPIV3Schema)
		}
	}
}

func removeRulesOf(schema *apiextensionsv1.JSONSchemaProps) {
	schema.XValidations = nil
	for name, property := range schema.Properties {
		removeRulesOf(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		removeRulesOf(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		removeRulesOf(schema.AdditionalProperties.Schema)
	}
}

// foreignDefinition accepts any object; like Argo's own it has no status subresource.
func foreignDefinition(group, version, kind, plural string) *apiextensionsv1.CustomResourceDefinition {
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
