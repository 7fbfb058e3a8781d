// Package node runs one node of the cluster: a process which is
// PID 1 of its own mount, PID, network, UTS and IPC namespaces, sets them up,
// and keeps the node's programs running. Killing it ends the complete node.
package node

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/hack/devcluster/cgroup"
	"vignette.dev/vignette/hack/devcluster/network"
)

// Config is a node's configuration. Paths are those of the machine.
type Config struct {
	Cluster string
	Number  int // from 1; node 1 runs the control plane
	Plan    network.Plan
	// Dir is the node's own folder; its subfolder var becomes the node's /var.
	Dir string
	// Kubernetes, CNI and PKI are folders with programs and certificates.
	Kubernetes, CNI, PKI string
	// Cgroup is the parent of the node's control groups.
	Cgroup string
	// ReservedMemoryBytes is the memory that pods cannot use.
	ReservedMemoryBytes int64
}

// Name is the node's name in the cluster.
func (c Config) Name() string { return network.NodeName(c.Number) }

func (c Config) group() string { return filepath.Join(c.Cgroup, c.Name()) }

// The node's own programs are in groups beside the pods', so that they end with the node and not with a login session.
// The control plane has its own group, as elsewhere it has its own machines.
func (c Config) systemGroup() string  { return filepath.Join(c.group(), "system") }
func (c Config) controlGroup() string { return filepath.Join(c.group(), "control") }
func (c Config) radioGroup() string   { return filepath.Join(c.Cgroup, c.Name()+"-radio") }
func (c Config) workerGroup() string  { return filepath.Join(c.Cgroup, c.Name()+"-worker") }

// Weights of a busy processor's time. The pods of a machine with two processors together have about 175. A cluster has as
// many processes as dozens of other programs, each of which weighs 100 and up to ten times as much by its
// niceness: a sandbox's own program at -10 kept a processor for 45 ms once a second. The control plane has to
// answer while dozens of containers start in system. And system must not crowd out the pods, whose delays are measured.
const (
	defaultWeight = 100
	clusterWeight = 5000
	systemWeight  = 25
	controlWeight = 100
)

func (c Config) controlPlane() bool { return c.Number == 1 }

// Folders inside the node.
const (
	ownDir        = "/run/devcluster"
	kubernetesDir = ownDir + "/kubernetes"
	pkiDir        = ownDir + "/pki"
	configDir     = ownDir + "/config"
	logDir        = "/var/log/devcluster"
	cniBinDir     = "/opt/cni/bin"
	cniConfigDir  = "/etc/cni/net.d"
)

// ConfigDescriptor is the descriptor from which Main reads the configuration.
const ConfigDescriptor = 3

// Main runs the node's PID 1. It returns only on failure.
func Main() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("this command is PID 1 of a node; it is not for people")
	}
	config, err := receiveConfig(os.NewFile(ConfigDescriptor, "config"))
	if err != nil {
		return err
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGPIPE)
	if err := config.setUp(); err != nil {
		return err
	}
	hierarchies, err := cgroup.Detect()
	if err != nil {
		return err
	}
	supervisor := newSupervisor(logDir, hierarchies)
	log.Printf("node %s of cluster %s: namespaces are set up", config.Name(), config.Cluster)
	if err := config.startPrograms(supervisor); err != nil {
		return err
	}
	log.Printf("all programs are started")
	select {}
}

// receiveConfig waits until the starter has recorded this process and given
// it an uplink. If the starter dies before, there is no configuration, and
// the node ends.
func receiveConfig(from io.ReadCloser) (Config, error) {
	defer from.Close()
	var c Config
	if err := json.NewDecoder(from).Decode(&c); err != nil {
		return c, fmt.Errorf("the starter of this node went away: %w", err)
	}
	return c, nil
}

func (c Config) setUp() error {
	hierarchies, err := cgroup.Detect()
	if err != nil {
		return err
	}
	for _, g := range []struct {
		path   string
		weight int
	}{{c.Cgroup, clusterWeight}, {c.group(), defaultWeight}, {c.systemGroup(), systemWeight}, {c.controlGroup(), controlWeight}, {c.radioGroup(), radioWeight}, {c.workerGroup(), workerWeight}} {
		if err := hierarchies.Create(g.path); err != nil {
			return err
		}
		if err := hierarchies.Weigh(g.path, g.weight); err != nil {
			return err
		}
	}
	if err := hierarchies.Enter(c.systemGroup(), os.Getpid()); err != nil {
		return err
	}
	if err := c.mountAll(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(c.Name())); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	if err := network.ConfigureNode(c.Plan, c.Number); err != nil {
		return err
	}
	if err := c.setKernelParameters(); err != nil {
		return err
	}
	raiseOpenFilesLimit()
	return nil
}

func (c Config) setKernelParameters() error {
	for name, value := range map[string]string{
		"net/ipv4/ip_forward": "1",
		// Else pod → service → pod on the same bridge loses its way back.
		"net/bridge/bridge-nf-call-iptables": "1",
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("kernel parameter %s: %w (is the module br_netfilter loaded?)", name, err)
		}
	}
	return nil
}

func raiseOpenFilesLimit() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
}

func (c Config) startPrograms(s *supervisor) error {
	if err := c.writeConfigs(); err != nil {
		return err
	}
	if c.controlPlane() {
		s.keep("etcd", c.etcd(), c.controlGroup(), setAsideBrokenEtcd)
		// At Go's 100, garbage collection takes half of the API server's time on two processors, while memory is free.
		s.keep("kube-apiserver", append([]string{"env", "GOGC=300"}, c.apiServer()...), c.controlGroup(), nil)
	}
	s.keep("containerd", []string{"containerd", "-c", configDir + "/containerd.toml"}, c.systemGroup(), nil)
	api, err := newAPI(c.Plan.APIServer())
	if err != nil {
		return err
	}
	// The controllers end permanently if they meet an API server whose
	// built-in roles do not exist yet.
	api.waitReady()
	if c.controlPlane() {
		s.keep("kube-controller-manager", controllerManager(), c.controlGroup(), nil)
		s.keep("kube-scheduler", scheduler(), c.controlGroup(), nil)
	}
	s.keep("kubelet", c.kubelet(), c.systemGroup(), nil)
	s.keep("kube-proxy", []string{kubernetesDir + "/kube-proxy", "--config=" + configDir + "/kube-proxy.yaml", "--hostname-override=" + c.Name()}, c.systemGroup(), nil)
	go keepVolumes(api, c.Name())
	go c.keepRadioApart(s.hierarchies)
	return nil
}

// setAsideBrokenEtcd is called when etcd has ended within seconds several times:
// it runs without fsync, so a machine that lost power may have lost its data.
func setAsideBrokenEtcd() {
	broken := "/var/lib/etcd.broken-" + time.Now().UTC().Format("20060102T150405")
	if err := os.Rename("/var/lib/etcd", broken); err == nil {
		log.Printf("etcd does not start with its data: moved to %s, starting with an empty cluster", broken)
	}
}
