package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/hack/devcluster/cgroup"
	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/machine"
	"vignette.dev/vignette/hack/devcluster/network"
	"vignette.dev/vignette/hack/devcluster/node"
	"vignette.dev/vignette/hack/devcluster/pki"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
	"vignette.dev/vignette/hack/devcluster/store"
)

const (
	apiWindow       = 3 * time.Minute
	poll            = 100 * time.Millisecond
	reservedMemory  = 1536 << 20 // the control plane and one node's own programs
	minimalNodeSize = 1 << 30
)

// BuildSteps returns the steps that build missing products.
func (c *Cluster) BuildSteps() []progress.Step {
	steps := []progress.Step{{Label: "check the machine", Do: machine.Prepare(c.file("logs", "machine.log"))}}
	for _, product := range c.Products.All() {
		steps = append(steps, c.Products.Cache.Step(product))
	}
	return steps
}

// UpSteps returns the steps that bring the cluster up. nodes is 0 for the former number,
// or one for a new cluster. In a running cluster the steps
// add missing parts and start ended ones.
func (c *Cluster) UpSteps(nodes int) []progress.Step {
	unlock := func() {}
	return append(c.BuildSteps(),
		progress.Step{Label: "prepare cluster " + c.Name, Do: func(ctx context.Context, h *progress.Handle) (err error) {
			unlock, err = c.lock(ctx, func() { h.Detail("waiting: another process works on this cluster") })
			if err != nil {
				return err
			}
			return c.prepare(ctx, nodes)
		}},
		progress.Step{Label: "start the nodes", Expect: time.Second, Do: c.startNodes},
		progress.Step{Label: "load the images of the cluster's own parts", Expect: 5 * time.Second, Do: c.loadSystemImages},
		progress.Step{Label: "wait for the API server", Expect: 5 * time.Second, Do: c.waitForAPI},
		progress.Step{Label: "apply CoreDNS, Multus, Argo Workflows, storage", Expect: 3 * time.Second, Do: c.applyManifests},
		progress.Step{Label: "wait until all is ready", Expect: 10 * time.Second, Do: func(ctx context.Context, h *progress.Handle) error {
			defer func() { unlock() }()
			return c.waitUntilReady(ctx, h)
		}},
	)
}

// prepare gives the cluster its index, certificates, programs and bridge.
func (c *Cluster) prepare(ctx context.Context, nodes int) error {
	if err := c.reload(); err != nil {
		return err
	}
	if err := c.chooseState(ctx, nodes); err != nil {
		return err
	}
	keys := pki.Directory{Path: c.pki(), Server: c.plan().APIServer()}
	apiNames := []string{
		c.plan().NodeAddress(1).Addr().String(), c.plan().APIService().String(), "127.0.0.1", "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	if err := keys.ControlPlane(apiNames); err != nil {
		return err
	}
	for n := 1; n <= c.state.Nodes; n++ {
		if err := keys.Node(network.NodeName(n), c.plan().NodeAddress(n).Addr().String()); err != nil {
			return err
		}
	}
	admin, err := os.ReadFile(filepath.Join(c.pki(), "admin.kubeconfig"))
	if err != nil {
		return err
	}
	if err := store.WriteFile(c.Kubeconfig(), admin, 0o600); err != nil {
		return err
	}
	if err := c.linkPrograms(); err != nil {
		return err
	}
	return c.host().Up()
}

func (c *Cluster) linkPrograms() error {
	kubernetes, err := c.Products.Cache.Path(c.Products.Kubernetes())
	if err != nil {
		return err
	}
	helm, err := c.Products.Cache.Path(c.Products.Helm())
	if err != nil {
		return err
	}
	return errors.Join(
		store.Symlink(filepath.Join(kubernetes, "kubectl"), filepath.Join(c.Bin(), "kubectl")),
		store.Symlink(filepath.Join(helm, "helm"), filepath.Join(c.Bin(), "helm")))
}

// chooseState decides the number of nodes, and for a new cluster an index
// whose addresses are free on the machine.
func (c *Cluster) chooseState(ctx context.Context, nodes int) error {
	wanted := c.state
	switch {
	case nodes > network.MaxNodes:
		return fmt.Errorf("%d nodes: want at most %d", nodes, network.MaxNodes)
	case nodes == 0:
		wanted.Nodes = max(c.state.Nodes, 1)
	case nodes < c.state.Nodes:
		return fmt.Errorf("cluster %s has %d nodes, want at least as many; to make it smaller: hack/cluster down --purge --name %s", c.Name, c.state.Nodes, c.Name)
	default:
		wanted.Nodes = nodes
	}
	unlock, err := store.Lock(ctx, filepath.Join(c.Home.Clusters(), ".indices.lock"), nil)
	if err != nil {
		return err
	}
	defer unlock()
	if c.state.Nodes == 0 {
		if wanted.Index, err = c.freeIndex(); err != nil {
			return err
		}
	} else if free, err := c.host().Free(); err != nil {
		return err
	} else if !free {
		return fmt.Errorf("something else on this machine uses %s, which cluster %s was made with; hack/cluster down --purge --name %s and up choose others",
			c.plan().NodeNetwork(), c.Name, c.Name)
	}
	c.state = wanted
	return writeJSON(c.file("cluster.json"), c.state)
}

func (c *Cluster) freeIndex() (int, error) {
	taken := map[int]bool{}
	files, err := filepath.Glob(filepath.Join(c.Home.Clusters(), "*", "cluster.json"))
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		var other state
		if readJSON(file, &other) == nil {
			taken[other.Index] = true
		}
	}
	for index := range network.MaxClusters {
		if taken[index] {
			continue
		}
		h := c.host()
		h.Plan.Index = index
		if free, err := h.Free(); err != nil {
			return 0, err
		} else if free {
			return index, nil
		}
	}
	return 0, fmt.Errorf("all %d address ranges (10.128.0.0 and up) are in use on this machine", network.MaxClusters)
}

func (c *Cluster) startNodes(_ context.Context, h *progress.Handle) error {
	built, err := c.builtFrom()
	if err != nil {
		return err
	}
	started, old := 0, 0
	for n := 1; n <= c.state.Nodes; n++ {
		p, alive := c.running(n)
		if !alive {
			h.Detail("%s", network.NodeName(n))
			if err := c.startNode(n, built); err != nil {
				return fmt.Errorf("node %s: %w", network.NodeName(n), err)
			}
			started++
		} else if p.Built != built {
			old++
		}
		if err := c.host().Route(n); err != nil {
			return err
		}
	}
	result := fmt.Sprintf("%d started, %d ran already", started, c.state.Nodes-started)
	if old > 0 {
		result += fmt.Sprintf("; %d from an OLDER build: hack/cluster down, then up, renews them", old)
	}
	h.Result("%s", result)
	return nil
}

// builtFrom names the products from which a node runs.
func (c *Cluster) builtFrom() (string, error) {
	kubernetes, err := c.Products.Cache.Path(c.Products.Kubernetes())
	if err != nil {
		return "", err
	}
	cni, err := c.Products.Cache.Path(c.Products.CNI())
	return filepath.Base(kubernetes) + " " + filepath.Base(cni), err
}

// startNode starts a node's PID 1. It records the process before it lets it continue,
// so that no node is ever unknown, even if this process is killed.
func (c *Cluster) startNode(number int, built string) error {
	config, err := c.nodeConfig(number)
	if err != nil {
		return err
	}
	// The kubelet takes seconds over each control group of a dead container.
	if err := cgroup.Remove(filepath.Join(c.cgroup(), config.Name())); err != nil {
		return err
	}
	if err := os.MkdirAll(config.Dir, 0o755); err != nil {
		return err
	}
	output, err := os.Create(filepath.Join(config.Dir, "node.log"))
	if err != nil {
		return err
	}
	defer output.Close()
	configReader, configWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer configWriter.Close()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "node", c.Name, network.NodeName(number))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", output, output
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd.ExtraFiles = []*os.File{configReader}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	err = cmd.Start()
	configReader.Close()
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	p, err := describeProcess(cmd.Process.Pid)
	if err != nil {
		return err
	}
	p.Built, p.Started = built, time.Now()
	if err := p.write(c.processFile(number)); err != nil {
		return err
	}
	if err := c.host().Attach(number, p.PID); err != nil {
		return err
	}
	return writeConfig(configWriter, config)
}

func (c *Cluster) nodeConfig(number int) (node.Config, error) {
	kubernetes, err := c.Products.Cache.Path(c.Products.Kubernetes())
	if err != nil {
		return node.Config{}, err
	}
	cni, err := c.Products.Cache.Path(c.Products.CNI())
	if err != nil {
		return node.Config{}, err
	}
	total, err := machine.MemoryBytes()
	if err != nil {
		return node.Config{}, err
	}
	return node.Config{
		Cluster: c.Name, Number: number, Plan: c.plan(), Dir: c.nodeDir(number), Cgroup: c.cgroup(),
		Kubernetes: kubernetes, CNI: cni, PKI: c.pki(),
		ReservedMemoryBytes: reserved(total, c.state.Nodes),
	}, nil
}

// reserved returns one node's memory that pods cannot use, so that all nodes together
// promise no more memory than the machine has.
func reserved(totalBytes int64, nodes int) int64 {
	share := (totalBytes - reservedMemory) / int64(nodes)
	return totalBytes - max(share, minimalNodeSize)
}

func (c *Cluster) loadSystemImages(ctx context.Context, h *progress.Handle) error {
	nodes, err := c.imageNodes()
	if err != nil {
		return err
	}
	folder, err := c.Products.Cache.Path(c.Products.SystemImages())
	if err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.tar"))
	if err != nil {
		return err
	}
	loaded := 0
	for i, n := range nodes {
		h.Detail("%s: waiting for containerd", n.Name)
		err := c.wait(ctx, apiWindow, i+1, func() bool { return n.Ready(ctx) })
		if err != nil {
			return fmt.Errorf("containerd of node %s: %w", n.Name, err)
		}
		for _, archive := range archives {
			h.Detail("%s: %s", n.Name, strings.TrimSuffix(filepath.Base(archive), ".tar"))
			image, err := images.ReadIdentity(archive)
			if err != nil {
				return err
			}
			done, err := n.Load(ctx, archive, image, c.log("load"))
			if err != nil {
				return err
			}
			if done {
				loaded++
			}
		}
	}
	h.Result("%d loaded, %d there already", loaded, len(nodes)*len(archives)-loaded)
	return nil
}

func (c *Cluster) waitForAPI(ctx context.Context, _ *progress.Handle) error {
	return c.wait(ctx, apiWindow, 1, func() bool {
		_, err := c.kubectl(ctx, "get", "--raw", "/readyz")
		return err == nil
	})
}

// wait polls until ready, or until the window has passed, or the node has died.
func (c *Cluster) wait(ctx context.Context, window time.Duration, node int, ready func() bool) error {
	for deadline := time.Now().Add(window); !ready(); {
		if _, alive := c.running(node); !alive {
			log := filepath.Join(c.nodeDir(node), "node.log")
			return &run.Failure{Command: "node " + network.NodeName(node), LogPath: log, Tail: run.Tail(log, 20), Err: errors.New("has ended")}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %s; the logs of the node's programs are in %s",
				progress.Short(window), filepath.Join(c.nodeDir(node), "var/log/devcluster"))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
	return nil
}
