package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/samples"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/internal/radiod/worker"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	carrierCommand = "carry"
	host           = "host"
	firstNamespace = 3 // descriptor of a carrier's first node
	lastSamples    = 2500 * time.Millisecond
)

// carry is the starved process: radiod's worker, without a cluster, for the network in its standard input. It
// writes the run's radio log and ends with its standard input.
func carry() error {
	var network v1alpha1.RadioNetwork
	if err := json.NewDecoder(os.Stdin).Decode(&network); err != nil {
		return err
	}
	priority := driver.Options{Nice: driver.DefaultNice}
	loops, err := driver.New(priority)
	if err != nil {
		return err
	}
	_ = loops.RaisePriority() // a refusal only makes the radio late more often
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	manager, err := worker.NewManager(worker.Options{Host: host, StateDirectory: "state", Plane: dataplane.New(loops), Keeper: noKeeper{}, Log: log})
	if err != nil {
		return err
	}
	if err := attach(manager, &network); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join("radio", host+".jsonl"))
	if err != nil {
		return err
	}
	sampler := &samples.Sampler{Source: manager, Archive: archive{file}, Host: host, Directory: "spool", Log: log}
	if err := sampler.Open(); err != nil {
		return err
	}
	go func() { _ = sampler.Run(context.Background()) }()
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	manager.Close()
	return err
}

func attach(manager *worker.Manager, network *v1alpha1.RadioNetwork) error {
	if err := errors.Join(manager.Restore(nil), manager.SetNetwork(network)); err != nil {
		return err
	}
	for i := range network.Spec.Members {
		pod, namespace := string(network.Spec.Members[i].PodUID), os.NewFile(uintptr(firstNamespace+i), "namespace")
		answer := manager.Serve(wire.Request{Command: "ADD", Attachment: wire.Attachment{ContainerID: pod, Interface: networkName}, PodUID: pod}, namespace)
		if answer.Error != "" {
			return errors.New(answer.Error)
		}
	}
	return nil
}

// noKeeper keeps no descriptors: a carrier has no successor.
type noKeeper struct{}

func (noKeeper) Hold(string, int) error { return nil }
func (noKeeper) Drop(string) error      { return nil }

// archive is the radio log in the run's folder.
type archive struct{ file *os.File }

func (a archive) AppendRadio(_ context.Context, _, _ string, offset int64, content io.Reader) (position runapi.LogPosition, err error) {
	written, err := io.Copy(io.NewOffsetWriter(a.file, offset), content)
	return runapi.LogPosition{Size: offset + written}, err
}

// bed is the nodes of one network, their clients, and the carrier of their frames.
type bed struct {
	directory string
	nodes     []*os.File // network namespaces
	carrier   *exec.Cmd
	toCarrier io.WriteCloser
	clients   []*exec.Cmd
}

// newBed makes the nodes of a network and starts their carrier.
func newBed(directory string, network *v1alpha1.RadioNetwork) (b *bed, err error) {
	b = &bed{directory: directory}
	for range network.Spec.Members {
		namespace, err := radiotest.Namespace()
		if err != nil {
			return b, err
		}
		b.nodes = append(b.nodes, namespace)
	}
	if err := os.MkdirAll(filepath.Join(directory, "radio"), 0o755); err != nil { //nolint:gosec // no secret
		return b, err
	}
	b.carrier, err = b.command(carrierCommand)
	b.carrier.ExtraFiles = b.nodes
	in, inErr := b.carrier.StdinPipe()
	out, outErr := b.carrier.StdoutPipe()
	b.toCarrier = in
	if err := errors.Join(err, inErr, outErr, b.carrier.Start(), json.NewEncoder(in).Encode(network)); err != nil {
		return b, err
	}
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		return b, fmt.Errorf("the carrier did not start: see %s", filepath.Join(directory, "output"))
	}
	return b, nil
}

// command is this program with other arguments, in the run's folder, where it logs.
func (b *bed) command(arguments ...string) (*exec.Cmd, error) {
	command := exec.Command("/proc/self/exe", arguments...)
	command.Dir = b.directory
	output, err := os.OpenFile(filepath.Join(b.directory, "output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // no secret
	command.Stderr = output
	return command, err
}

// start starts a program at a node.
func (b *bed) start(node int, environment []string, arguments ...string) error {
	command, err := b.command(arguments...)
	if err != nil {
		return err
	}
	command.Env = append(os.Environ(), environment...)
	err = netns.Do(b.nodes[node], command.Start)
	if err == nil {
		b.clients = append(b.clients, command)
	}
	return err
}

func (b *bed) stopClients() (err error) {
	for _, c := range b.clients {
		err = errors.Join(err, c.Process.Signal(unix.SIGTERM))
	}
	for _, c := range b.clients {
		err = errors.Join(err, c.Wait())
	}
	return err
}

// stop ends the carrier and removes the nodes.
func (b *bed) stop() (err error) {
	if b.carrier != nil && b.carrier.Process != nil {
		err = errors.Join(b.toCarrier.Close(), b.carrier.Wait())
	}
	for _, n := range b.nodes {
		err = errors.Join(err, n.Close())
	}
	return err
}
