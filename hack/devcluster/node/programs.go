package node

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/hack/devcluster/build"
	"vignette.dev/vignette/hack/devcluster/pki"
)

//go:embed config
var configFiles embed.FS

const overlayMagic = 0x794c7630

// configTargets has the destination of each template of the folder config.
var configTargets = map[string]string{
	"containerd.toml": configDir,
	"kubelet.yaml":    configDir,
	"kube-proxy.yaml": configDir,
	"00-multus.conf":  cniConfigDir,
}

// settings are the values of the templates.
type settings struct {
	Name, PKI, CgroupRoot, PauseImage, Snapshotter string
	CNIBin, CNIConfig, LogDir                      string
	Pods, NodePods, DNS                            string
	ReservedMemoryBytes                            int64
	CanLowerOOMScore                               bool
}

func (c Config) settings() settings {
	return settings{
		Name: c.Name(), PKI: pkiDir, CgroupRoot: c.group(), PauseImage: build.PauseImage, Snapshotter: snapshotter(),
		CNIBin: cniBinDir, CNIConfig: cniConfigDir, LogDir: logDir,
		Pods: c.Plan.Pods().String(), NodePods: c.Plan.NodePods(c.Number).String(), DNS: c.Plan.DNSService().String(),
		ReservedMemoryBytes: c.ReservedMemoryBytes, CanLowerOOMScore: canLowerOOMScore(),
	}
}

// snapshotter returns native on an overlay, which cannot hold another one, as inside another container.
func snapshotter() string {
	var stat unix.Statfs_t
	if unix.Statfs("/var", &stat) == nil && stat.Type == overlayMagic {
		return "native"
	}
	return "overlayfs"
}

// canLowerOOMScore reports whether this process may do what containerd does for
// its important containers.
func canLowerOOMScore() bool {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, []byte("-999"), 0o644) != nil {
		return false
	}
	return os.WriteFile(file, before, 0o644) == nil
}

func (c Config) writeConfigs() error {
	for name, folder := range configTargets {
		text, err := renderConfig(name, c.settings())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	return os.CopyFS(cniBinDir, os.DirFS(ownDir+"/cni/bin"))
}

func renderConfig(name string, values settings) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(configFiles, "config/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", name, err)
	}
	return out.Bytes(), nil
}

func (c Config) etcd() []string {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return []string{
		kubernetesDir + "/etcd", "--name=devcluster", "--data-dir=/var/lib/etcd",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=devcluster=" + peer,
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

func (c Config) apiServer() []string {
	return []string{
		kubernetesDir + "/kube-apiserver",
		"--advertise-address=" + c.Plan.NodeAddress(1).Addr().String(), "--secure-port=6443",
		"--etcd-servers=http://127.0.0.1:2379",
		"--service-cluster-ip-range=" + c.Plan.Services().String(),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + pkiDir + "/ca.crt", "--authentication-config=" + pkiDir + "/" + pki.AuthenticationFile,
		"--tls-cert-file=" + pkiDir + "/apiserver.crt", "--tls-private-key-file=" + pkiDir + "/apiserver.key",
		"--kubelet-client-certificate=" + pkiDir + "/apiserver-kubelet-client.crt",
		"--kubelet-client-key=" + pkiDir + "/apiserver-kubelet-client.key",
		"--kubelet-certificate-authority=" + pkiDir + "/ca.crt", "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + pkiDir + "/front-proxy-ca.crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pkiDir + "/front-proxy-client.crt",
		"--proxy-client-key-file=" + pkiDir + "/front-proxy-client.key",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pkiDir + "/sa.pub", "--service-account-signing-key-file=" + pkiDir + "/sa.key",
		"--allow-privileged=true", "--profiling=false",
	}
}

func controllerManager() []string {
	return append(controller("kube-controller-manager"),
		"--service-account-private-key-file="+pkiDir+"/sa.key", "--root-ca-file="+pkiDir+"/ca.crt",
		"--use-service-account-credentials=true",
		"--cluster-signing-cert-file="+pkiDir+"/ca.crt", "--cluster-signing-key-file="+pkiDir+"/ca.key")
}

func scheduler() []string { return controller("kube-scheduler") }

func controller(name string) []string {
	kubeconfig := pkiDir + "/" + name + ".kubeconfig"
	return []string{
		kubernetesDir + "/" + name, "--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false",
	}
}

func (c Config) kubelet() []string {
	return []string{
		kubernetesDir + "/kubelet", "--config=" + configDir + "/kubelet.yaml",
		"--kubeconfig=" + pkiDir + "/kubelet-" + c.Name() + ".kubeconfig",
		"--hostname-override=" + c.Name(), "--node-ip=" + c.Plan.NodeAddress(c.Number).Addr().String(),
		"--root-dir=/var/lib/kubelet",
	}
}
