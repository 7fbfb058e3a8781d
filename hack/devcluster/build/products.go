package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
)

// The cluster's versions. Those of modules are in
// their go.mod files; they are repeated here for other uses.
const (
	kubernetesVersion = "v1.34.4"
	multusModule      = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4"
	argoModule        = "github.com/argoproj/argo-workflows/v3"
	argoVersion       = "v3.7.2"
	coreDNSVersion    = "1.12.4"
	helmVersion       = "v3.19.0"
	argoCDModule      = "github.com/argoproj/argo-cd/v3"
	argoCDVersion     = "v3.1.0"
)

// The images of the cluster's own parts.
const (
	PauseImage          = "localhost/devcluster/pause:1"
	CoreDNSImage        = "localhost/devcluster/coredns:" + coreDNSVersion
	ArgoControllerImage = "localhost/devcluster/workflow-controller:" + argoVersion
	ArgoExecutorImage   = "localhost/devcluster/argoexec:" + argoVersion
)

// Programs of the multi-call binary.
var kubernetesPrograms = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"}

// Products are all products of a cluster. Source is the folder hack/devcluster.
type Products struct {
	Source string
	Cache  Cache
}

// All returns them in build order.
func (p Products) All() []Product {
	return []Product{p.Kubernetes(), p.CNI(), p.Argo(), p.Helm(), p.SystemImages()}
}

func (p Products) source(parts ...string) string {
	return filepath.Join(append([]string{p.Source}, parts...)...)
}

// Kubernetes is one executable with etcd and Kubernetes' programs, one symbolic
// link to it for each, and CoreDNS.
func (p Products) Kubernetes() Product {
	return Product{
		Name: "kubernetes", Recipe: "1",
		Label:  "build Kubernetes (etcd, kube-apiserver, kubelet, …) and CoreDNS",
		Expect: 8 * time.Minute,
		Inputs: []string{p.source("kubernetes", "go.mod"), p.source("kubernetes", "go.sum"), p.source("kubernetes", "kubelab"), p.source("kubernetes", "coredns")},
		Make: func(ctx context.Context, h *progress.Handle, dir, log string) error {
			err := goBuild{
				dir: p.source("kubernetes"), out: dir + "/", ldflags: kubernetesVersionFlags(),
				packages: []string{"./kubelab", "./coredns"},
			}.run(ctx, h, log)
			if err != nil {
				return err
			}
			for _, program := range kubernetesPrograms {
				if err := os.Symlink("kubelab", filepath.Join(dir, program)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func kubernetesVersionFlags() string {
	const p = "k8s.io/component-base/version"
	values := [][2]string{
		{p + ".gitVersion", kubernetesVersion}, {p + ".gitMajor", "1"}, {p + ".gitMinor", "34"},
		{p + ".gitTreeState", "clean"}, {p + ".gitCommit", "modproxy"}, {p + ".buildDate", "1970-01-01T00:00:00Z"},
		{"k8s.io/client-go/pkg/version.gitVersion", kubernetesVersion},
	}
	flags := make([]string, len(values))
	for i, v := range values {
		flags[i] = "-X " + v[0] + "=" + v[1]
	}
	return strings.Join(flags, " ")
}

// CNI is the folder of CNI plugins, and Multus' CRD and RBAC in multus.yaml.
func (p Products) CNI() Product {
	const plugins = "github.com/containernetworking/plugins/plugins/"
	return Product{
		Name: "cni", Recipe: "1",
		Label:  "build Multus and the CNI plugins",
		Expect: 30 * time.Second,
		Inputs: []string{p.source("kubernetes", "multus.mod"), p.source("kubernetes", "multus.sum")},
		Make: func(ctx context.Context, h *progress.Handle, dir, log string) error {
			err := goBuild{
				dir: p.source("kubernetes"), modfile: "multus.mod", out: filepath.Join(dir, "bin") + "/",
				packages: []string{
					multusModule + "/cmd/multus",
					plugins + "main/bridge", plugins + "main/loopback", plugins + "main/macvlan",
					plugins + "ipam/host-local", plugins + "ipam/static", plugins + "meta/portmap",
				},
			}.run(ctx, h, log)
			if err != nil {
				return err
			}
			module, err := moduleDir(ctx, p.source("kubernetes"), multusModule, "multus.mod")
			if err != nil {
				return err
			}
			manifest, err := os.ReadFile(filepath.Join(module, "deployments", "multus-daemonset.yml"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "multus.yaml"), []byte(multusObjects(string(manifest))), 0o644)
		},
	}
}

// multusObjects keeps the needed parts of Multus' manifest for a node with the plugin
// installed: the definition of the attachments and the role.
func multusObjects(manifest string) string {
	var kept []string
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		for _, kind := range []string{"CustomResourceDefinition", "ClusterRole"} {
			if strings.Contains("\n"+document+"\n", "\nkind: "+kind+"\n") {
				kept = append(kept, document)
			}
		}
	}
	return strings.Join(kept, "\n---\n") + "\n"
}

// Helm is the program helm.
func (p Products) Helm() Product {
	return Product{
		Name: "helm", Recipe: "2", Label: "build Helm", Expect: time.Minute,
		Inputs: []string{p.source("helm", "go.mod"), p.source("helm", "go.sum")},
		Make: func(ctx context.Context, h *progress.Handle, dir, log string) error {
			const chart = "helm.sh/helm/v3/pkg/chartutil"
			return goBuild{
				dir: p.source("helm"), out: dir + "/", packages: []string{"helm.sh/helm/v3/cmd/helm"},
				// The cluster's version for "helm template".
				ldflags: "-X helm.sh/helm/v3/internal/version.version=" + helmVersion +
					" -X " + chart + ".k8sVersionMajor=1 -X " + chart + ".k8sVersionMinor=34",
			}.run(ctx, h, log)
		},
	}
}

// SystemImages are the image archives of the cluster's own parts.
func (p Products) SystemImages() Product {
	return Product{
		Name: "system-images", Recipe: p.recipeOf("1", p.Kubernetes(), p.Argo()),
		Label: "make the images of the cluster's own parts", Expect: 15 * time.Second,
		Inputs: []string{p.source("pause"), p.source("images", "archive.go")},
		Make: func(ctx context.Context, h *progress.Handle, dir, log string) error {
			programs := filepath.Join(dir, ".programs") + "/"
			defer os.RemoveAll(programs)
			if err := (goBuild{dir: p.Source, out: programs, packages: []string{"./pause"}}).run(ctx, h, log); err != nil {
				return err
			}
			kubernetes, err := p.Cache.Path(p.Kubernetes())
			if err != nil {
				return err
			}
			argo, err := p.Cache.Path(p.Argo())
			if err != nil {
				return err
			}
			for _, image := range []images.Archive{
				{Name: PauseImage, Program: programs + "pause"},
				{Name: CoreDNSImage, Program: kubernetes + "/coredns"},
				{Name: ArgoControllerImage, Program: argo + "/workflow-controller", User: "8737"},
				{Name: ArgoExecutorImage, Program: argo + "/argoexec"},
			} {
				h.Detail("%s", image.Name)
				file := strings.TrimSuffix(filepath.Base(image.Program), "/") + ".tar"
				if err := image.Write(filepath.Join(dir, file)); err != nil {
					return fmt.Errorf("image %s: %w", image.Name, err)
				}
			}
			return nil
		},
	}
}

// recipeOf makes a product depend on others.
func (p Products) recipeOf(own string, others ...Product) string {
	keys := []string{own}
	for _, other := range others {
		key, err := other.Key()
		if err != nil {
			key = err.Error() // the same error stops the other product's own step
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, " ")
}

// Argo is Argo Workflows' controller and executor, and argo.yaml with all the
// objects they need.
func (p Products) Argo() Product {
	return Product{
		Name: "argo", Recipe: p.recipeOf("1 "+argoVersion, p.Kubernetes()),
		Label: "build Argo Workflows", Expect: 4 * time.Minute,
		Inputs: []string{p.source("argo")},
		Make: func(ctx context.Context, h *progress.Handle, dir, log string) error {
			source := filepath.Join(dir, "source")
			defer os.RemoveAll(source)
			if err := argoSource(ctx, p.Source, source); err != nil {
				return err
			}
			err := goBuild{
				dir: source, out: dir + "/", packages: []string{"./cmd/argoexec", "./cmd/workflow-controller"},
				ldflags: fmt.Sprintf("-X %[1]s.version=%[2]s -X %[1]s.gitTag=%[2]s -X %[1]s.gitTreeState=clean", argoModule, argoVersion),
			}.run(ctx, h, log)
			if err != nil {
				return err
			}
			return p.argoManifest(ctx, source, filepath.Join(dir, "argo.yaml"))
		},
	}
}

// argoSource copies the module and adds its missing file signal_linux.go:
// the repository has a symbolic link, which module archives leave out.
func argoSource(ctx context.Context, workDir, to string) error {
	module, err := moduleDir(ctx, workDir, argoModule+"@"+argoVersion, "")
	if err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(module)); err != nil {
		return fmt.Errorf("copy %s: %w", module, err)
	}
	folder := filepath.Join(to, "workflow", "executor", "osspecific")
	missing, err := os.ReadFile(filepath.Join(folder, "signal_darwin.go"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "signal_linux.go"), missing, 0o644)
}

// argoManifest renders Argo's own manifests with hack/devcluster/argo on top.
func (p Products) argoManifest(ctx context.Context, source, to string) error {
	text, err := p.overlay(ctx, p.source("argo"), filepath.Join(source, "manifests"))
	if err != nil {
		return err
	}
	text = strings.NewReplacer("@CONTROLLER_IMAGE@", ArgoControllerImage, "@EXECUTOR_IMAGE@", ArgoExecutorImage).Replace(text)
	return os.WriteFile(to, []byte(text), 0o644)
}

// overlay renders a module's manifests with one of our folders on top.
func (p Products) overlay(ctx context.Context, ours, manifests string) (string, error) {
	folder := filepath.Join(manifests, "devcluster")
	if err := os.CopyFS(folder, os.DirFS(ours)); err != nil {
		return "", err
	}
	kubernetes, err := p.Cache.Path(p.Kubernetes())
	if err != nil {
		return "", err
	}
	return run.Output(ctx, run.Command{Name: filepath.Join(kubernetes, "kubectl"), Args: []string{"kustomize", folder}})
}

// ArgoCD is the build context of Argo CD's image, with its Dockerfile, and argocd.yaml with all the objects of an Argo CD
// without a web server. A plain cluster does not have it.
func (p Products) ArgoCD() Product {
	return Product{
		Name: "argocd", Recipe: p.recipeOf("1 "+argoCDVersion, p.Kubernetes()),
		Label: "build Argo CD", Expect: 5 * time.Minute,
		Inputs: []string{p.source("argocd")},
		Make: func(ctx context.Context, h *progress.Handle, dir, log string) error {
			bin := filepath.Join(dir, "bin")
			err := goBuild{
				dir: p.source("argocd"), out: bin + "/", packages: []string{argoCDModule + "/cmd", "sigs.k8s.io/kustomize/kustomize/v5"},
				ldflags: fmt.Sprintf("-X %[1]s/common.version=%[2]s -X %[1]s/common.gitTreeState=clean", argoCDModule, strings.TrimPrefix(argoCDVersion, "v")),
			}.run(ctx, h, log)
			if err != nil {
				return err
			}
			if err := os.Rename(filepath.Join(bin, "cmd"), filepath.Join(bin, "argocd")); err != nil {
				return err
			}
			dockerfile, err := os.ReadFile(p.source("argocd", "Dockerfile"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), dockerfile, 0o644); err != nil {
				return err
			}
			return p.argoCDManifest(ctx, dir)
		},
	}
}

func (p Products) argoCDManifest(ctx context.Context, dir string) error {
	module, err := moduleDir(ctx, p.source("argocd"), argoCDModule, "")
	if err != nil {
		return err
	}
	manifests := filepath.Join(dir, "manifests")
	defer os.RemoveAll(manifests)
	if err := os.CopyFS(manifests, os.DirFS(filepath.Join(module, "manifests"))); err != nil {
		return fmt.Errorf("copy the manifests of %s: %w", module, err)
	}
	text, err := p.overlay(ctx, p.source("argocd", "manifests"), manifests)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "argocd.yaml"), []byte(text), 0o644)
}
