// Package cluster brings clusters up and down, and records their state.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"vignette.dev/vignette/hack/devcluster/build"
	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/network"
	"vignette.dev/vignette/hack/devcluster/run"
	"vignette.dev/vignette/hack/devcluster/store"
)

// Cluster is a cluster on this machine, up or down.
type Cluster struct {
	Home     store.Home
	Name     string
	Dir      string
	Products build.Products
	state    state
}

// state is the record in the cluster's folder.
type state struct {
	Index int `json:"index"`
	Nodes int `json:"nodes"`
}

// Open returns the named cluster, which need not exist yet.
func Open(home store.Home, name, source string) (*Cluster, error) {
	dir, err := home.Cluster(name)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Home: home, Name: name, Dir: dir, Products: build.Products{Source: source, Cache: build.Cache{Home: home}}}
	if err := readJSON(c.file("cluster.json"), &c.state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return c, nil
}

// ErrNone is returned for a cluster that was never brought up.
var ErrNone = errors.New("no such cluster")

func (c *Cluster) mustExist() error {
	if c.state.Nodes == 0 {
		return fmt.Errorf("%w: %q (hack/cluster up --name %s makes it)", ErrNone, c.Name, c.Name)
	}
	return nil
}

func (c *Cluster) file(parts ...string) string {
	return filepath.Join(append([]string{c.Dir}, parts...)...)
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.file("kubeconfig") }

// Bin is the folder with kubectl and helm.
func (c *Cluster) Bin() string { return c.file("bin") }

func (c *Cluster) log(name string) string { return c.file("logs", name+".log") }

func (c *Cluster) pki() string { return c.file("pki") }

func (c *Cluster) nodeDir(node int) string { return c.file("nodes", network.NodeName(node)) }

func (c *Cluster) processFile(node int) string {
	return filepath.Join(c.nodeDir(node), "process.json")
}

func (c *Cluster) plan() network.Plan { return network.Plan{Index: c.state.Index} }

func (c *Cluster) host() network.Host {
	return network.Host{Plan: c.plan(), Owner: "vignette " + c.Dir}
}

func (c *Cluster) cgroup() string { return fmt.Sprintf("/vignette-%s-%d", c.Name, c.state.Index) }

// lock serialises changes of the cluster. The lock file is beside the
// cluster's folder, which may be removed while it is held.
func (c *Cluster) lock(ctx context.Context, waiting func()) (func(), error) {
	return store.Lock(ctx, filepath.Join(c.Home.Clusters(), "."+c.Name+".lock"), waiting)
}

// reload reads the state again, after locking.
func (c *Cluster) reload() error {
	c.state = state{}
	if err := readJSON(c.file("cluster.json"), &c.state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// running returns a node's process, if it runs.
func (c *Cluster) running(node int) (process, bool) {
	p, err := readProcess(c.processFile(node))
	return p, err == nil && p.alive()
}

// Enter returns the beginning of a command line that runs in a node.
func (c *Cluster) Enter(node int) ([]string, error) {
	if err := c.mustExist(); err != nil {
		return nil, err
	}
	p, alive := c.running(node)
	if !alive {
		return nil, fmt.Errorf("node %s of cluster %s does not run", network.NodeName(node), c.Name)
	}
	return []string{"nsenter", "-t", strconv.Itoa(p.PID), "-m", "-u", "-i", "-n", "-p"}, nil
}

// imageNodes returns the running nodes as targets for images.
func (c *Cluster) imageNodes() ([]images.Node, error) {
	var nodes []images.Node
	for node := 1; node <= c.state.Nodes; node++ {
		enter, err := c.Enter(node)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, images.Node{Name: network.NodeName(node), Enter: enter})
	}
	return nodes, nil
}

func (c *Cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	return run.Output(ctx, run.Command{
		Name: filepath.Join(c.Bin(), "kubectl"), Args: args,
		Env: []string{"KUBECONFIG=" + c.Kubeconfig()},
	})
}

// Purge removes the folder of a cluster that is down.
func (c *Cluster) Purge() error { return os.RemoveAll(c.Dir) }
