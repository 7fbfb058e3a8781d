package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// user is the user of an experiment's containers.
const user = 65532

// images is the folder of our built programs; other brokers are installed.
var images = apps.Images{Traffic: "traffic", ZeroMQ: "zeromq"}

// bed is a folder with the programs, in which everything runs.
type bed struct {
	scale
	dir string
	run int
}

func newBed(s scale) (*bed, error) {
	dir, err := os.MkdirTemp("", "bench-protocols")
	if err != nil {
		return nil, err
	}
	b := &bed{scale: s, dir: dir}
	for _, image := range []string{images.Traffic, images.ZeroMQ} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, image), "./images/"+image)
		build.Env = append(os.Environ(), "GOPROXY=off") // there is no network here
		if out, err := build.CombinedOutput(); err != nil {
			b.close()
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	return b, os.Chmod(dir, 0o755)
}

func (b *bed) close() { _ = os.RemoveAll(b.dir) }

// process is an app's process.
type process struct {
	*exec.Cmd
	log    string
	output *bytes.Buffer
	ended  chan struct{}
}

// start starts the rendered program of a kind, with its run directory moved here.
func (b *bed) start(r apps.Rendering) (*process, error) {
	b.run++
	dir := filepath.Join(b.dir, strconv.Itoa(b.run))
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
		return nil, err
	}
	move := func(text string) string { return strings.ReplaceAll(text, agentconfig.RunDir, dir) }
	for _, f := range r.Files {
		path := move(f.Path)
		if err := errors.Join(os.WriteFile(path, []byte(move(f.Content)), 0o600), os.Chown(path, user, user)); err != nil {
			return nil, err
		}
	}
	command := r.Instances[0].Command
	name := move(command[0])
	if name == "/traffic" {
		name = filepath.Join(b.dir, r.Image)
	}
	p := &process{Cmd: exec.Command(name), log: filepath.Join(dir, "messages.jsonl"), output: &bytes.Buffer{}, ended: make(chan struct{})}
	for _, argument := range command[1:] {
		p.Args = append(p.Args, move(argument))
	}
	p.Dir, p.Env = dir, append(os.Environ(), messagelog.EnvPath+"="+p.log)
	p.Stdout, p.Stderr = p.output, p.output
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}, Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.Wait()
		close(p.ended)
	}()
	return p, nil
}

// stop stops a process, and kills it if necessary.
func (p *process) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.Process.Kill()
		<-p.ended
	}
}

// stopAll stops all processes, the last one first.
func stopAll(processes []*process) {
	for _, p := range slices.Backward(processes) {
		p.stop()
	}
}

// site returns the site of an app on the only node.
func site(app v1alpha1.App) apps.Site {
	return apps.Site{
		App: app, Node: "n", Group: "n", Instances: []string{"n/" + app.Name}, MetricsPorts: []int{0}, TotalInstances: 1, Images: images, Seed: 1,
		Senders: []apps.Sender{{Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S001"}},
	}
}

// site returns the site of a broker that is a client of another one.
func (b broker) site(server apps.Server) apps.Site {
	s := site(b.app)
	s.Servers = []apps.Server{server}
	return s
}

func (b broker) server() apps.Server {
	return apps.Server{Address: fmt.Sprintf("127.0.0.1:%d", apps.Port(b.protocol, b.app)), Node: "n", App: b.app}
}

// startBrokers starts them in order, and returns the clients' one.
func (b *bed) startBrokers(brokers []broker) (started []*process, server apps.Server, err error) {
	for _, each := range brokers {
		p, err := b.start(each.kind.Render(each.site(server)))
		if err != nil {
			return started, server, err
		}
		started, server = append(started, p), each.server()
		if err := p.wait(each); err != nil {
			return started, server, err
		}
	}
	return started, server, nil
}

// wait waits until a broker listens.
func (p *process) wait(b broker) error {
	if b.udp {
		time.Sleep(500 * time.Millisecond)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.server().Address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %s", b.kind.Name(), p.output)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen at %s: %s", b.kind.Name(), b.server().Address, p.output)
}

// cpu returns the processor time of a process and all its descendants.
func cpu(p *process) time.Duration {
	parents, seconds := map[int]int{}, map[int]float64{}
	all, _ := procfs.AllProcs()
	for _, one := range all {
		if stat, err := one.Stat(); err == nil { // else it has ended meanwhile
			parents[stat.PID], seconds[stat.PID] = stat.PPID, stat.CPUTime()
		}
	}
	total := 0.0
	for id := range parents {
		for at := id; at > 1; at = parents[at] {
			if at == p.Process.Pid {
				total += seconds[id]
				break
			}
		}
	}
	return time.Duration(total * float64(time.Second))
}
