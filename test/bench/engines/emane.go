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
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Names in the namespaces of EMANE's processes.
const (
	otaDevice   = "ota0"
	radioDevice = "radio0"
	hubDevice   = "hub0"
)

// emaneBed has an EMANE process for each node, in the node's own namespace, and a bridge between them for its
// channels.
type emaneBed struct {
	settings  *settings
	directory string
	hub       *os.File
	all       []node
	// hosts are the namespaces of the nodes' processes.
	hosts     func(i int) *os.File
	processes []*process
	publisher *emane.Publisher
}

type process struct {
	command *exec.Cmd
	log     *os.File
	nems    int
}

func newEMANE(s *settings, spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario) (bed, error) {
	b := &emaneBed{settings: s}
	b.hosts = func(i int) *os.File { return b.all[i].namespace }
	if err := b.start(spec, paths); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *emaneBed) start(spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario) (err error) {
	if err := b.prepare(spec); err != nil {
		return err
	}
	for i := range spec.Members {
		if err := b.add(spec, &spec.Members[i]); err != nil {
			return fmt.Errorf("%s: %w", spec.Members[i].Node, err)
		}
	}
	return b.publishScenario(spec, paths)
}

// publishScenario the processes what the scenario says, once they answer, and see that all have it.
func (b *emaneBed) publishScenario(spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario) error {
	for i := range b.processes {
		if err := b.wait(i); err != nil {
			return err
		}
	}
	if err := b.publish(spec, paths); err != nil {
		return err
	}
	return b.check(spec)
}

// prepare makes the common parts: folder, bridge, and event channel.
func (b *emaneBed) prepare(spec *v1alpha1.RadioNetworkSpec) (err error) {
	if b.directory, err = os.MkdirTemp(b.settings.logs, "engines-"+spec.Network+"-"); err != nil {
		return err
	}
	if b.hub, err = newHub(); err != nil {
		return err
	}
	return netns.Do(b.hub, func() error {
		b.publisher, err = emane.NewPublisher(context.Background(), emane.DefaultEventGroup, hubDevice, 1)
		return err
	})
}

// newHub makes the namespace with the bridge. It ignores group memberships, because nobody queries them
// again.
func newHub() (*os.File, error) {
	hub, err := radiotest.Namespace()
	if err != nil {
		return nil, err
	}
	return hub, netns.Do(hub, func() error {
		snooping := false
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: hubDevice}, MulticastSnooping: &snooping}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("bridge: %w", err)
		}
		return addressed(bridge, "10.99.255.254/16")
	})
}

func addressed(link netlink.Link, address string) error {
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(link, a), netlink.LinkSetUp(link))
}

// add adds a node: its namespace, its end of the channels, its files and its process.
func (b *emaneBed) add(spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member) error {
	nem := int(member.NEM)
	namespace, err := b.newNamespace(nem)
	if err != nil {
		return err
	}
	b.all = append(b.all, node{namespace, radioDevice})
	directory := filepath.Join(b.directory, strconv.Itoa(nem))
	if _, err := b.write(spec, member, emane.Process{Directory: directory, DTDs: b.dtds(), Device: otaDevice, Interface: radioDevice}); err != nil {
		return err
	}
	return netns.Do(namespace, func() error { return b.startProcess(nem, 1, directory) })
}

// newNamespace makes a namespace with an end of the channels.
func (b *emaneBed) newNamespace(nem int) (*os.File, error) {
	namespace, err := radiotest.Namespace()
	if err != nil {
		return nil, err
	}
	return namespace, netns.Do(b.hub, func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "n" + strconv.Itoa(nem)}, PeerName: otaDevice, PeerNamespace: netlink.NsFd(namespace.Fd())}
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("veth: %w", err)
		}
		bridge, err := netlink.LinkByName(hubDevice)
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetMaster(veth, bridge), netlink.LinkSetUp(veth))
	})
}

// write writes a node's files, and returns them.
func (b *emaneBed) write(spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member, p emane.Process) ([]emane.File, error) {
	files, err := emane.Render(spec, member, p)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(p.Directory, 0o755); err != nil { //nolint:gosec // read by EMANE
		return nil, err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(p.Directory, f.Name), f.Text, 0o644); err != nil { //nolint:gosec // read by EMANE
			return nil, err
		}
	}
	return files, nil
}

func (b *emaneBed) dtds() string {
	if b.settings.prefix == "" {
		return emane.DefaultDTDs
	}
	return filepath.Join(b.settings.prefix, "share", "emane", "dtd")
}

// startProcess sets up the calling thread's namespace and starts the process of that many NEMs in it. number
// determines its address.
func (b *emaneBed) startProcess(number, nems int, directory string) error {
	// As in the namespaces of the native engine: only the load is sent.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
		return err
	}
	for name, address := range map[string]string{"lo": "127.0.0.2/8", otaDevice: fmt.Sprintf("10.99.%d.%d/16", number>>8, number&255)} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := addressed(link, address); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	log, err := os.Create(filepath.Join(directory, "emane.log"))
	if err != nil {
		return err
	}
	// -r: the scheduler that EMANE's manual recommends, without which TDMA misses slots under load.
	command := exec.Command("emane", "-r", "-l", "2", emane.Platform)
	if b.settings.prefix != "" {
		command.Path, command.Err = filepath.Join(b.settings.prefix, "bin", "emane"), nil
		command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(b.settings.prefix, "lib"))
	}
	command.Dir, command.Stdout, command.Stderr = directory, log, log
	command.SysProcAttr = &syscall.SysProcAttr{}
	b.processes = append(b.processes, &process{command, log, nems})
	if err := command.Start(); err != nil {
		return fmt.Errorf("EMANE: %w", err)
	}
	return nil
}

// wait waits until a node's process answers on its control port.
func (b *emaneBed) wait(i int) error {
	var last error
	for range 100 {
		if last = b.control(i, func(c *emane.Control) error { _, err := c.Manifest(); return err }); last == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(b.processes[i].log.Name())
	return fmt.Errorf("process %d of EMANE does not answer: %w\n%s", i+1, last, text)
}

func (b *emaneBed) control(i int, f func(*emane.Control) error) error {
	return netns.Do(b.hosts(i), func() error {
		connection, err := net.DialTimeout("tcp4", emane.DefaultControl.String(), time.Second)
		if err != nil {
			return err
		}
		c := emane.NewControl(connection, 2*time.Second)
		return errors.Join(f(c), c.Close())
	})
}

// publish publishes the scenario.
func (b *emaneBed) publish(spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario) error {
	feed, err := emane.NewFeed(spec, paths)
	if err != nil {
		return err
	}
	events, _, _, err := feed.Changes(0)
	if err != nil {
		return err
	}
	if spec.Waveform.TDMA != nil {
		schedule, err := emane.Schedule(spec)
		if err != nil {
			return err
		}
		for _, nem := range schedule.NEMs() {
			events = append(events, emane.ScheduleFor(nem, schedule))
		}
	}
	return b.publisher.Publish(events)
}

// check checks that every process has the scenario, for each of its nodes.
func (b *emaneBed) check(spec *v1alpha1.RadioNetworkSpec) error {
	time.Sleep(500 * time.Millisecond)
	for i, p := range b.processes {
		err := b.control(i, func(c *emane.Control) error {
			all, err := emane.Scrape(nil, c, nil)
			if err == nil && len(all) != p.nems {
				err = fmt.Errorf("process %d has %d NEMs, want %d", i+1, len(all), p.nems)
			}
			for k := range all {
				err = errors.Join(err, b.checkStatistics(spec, &all[k]))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkStatistics is an error where a NEM has not got all events.
func (b *emaneBed) checkStatistics(spec *v1alpha1.RadioNetworkSpec, s *emane.Statistics) error {
	if s.Pathloss != len(b.all)-1 || spec.Waveform.TDMA != nil && s.Schedules != 1 {
		return fmt.Errorf("NEM %d has not got all events: %+v", s.NEM, s)
	}
	return nil
}

// lateness returns the average lateness of the timers of the first node's model, as EMANE reports it, in
// microseconds.
func (b *emaneBed) lateness() (average float64, err error) {
	return average, b.control(0, func(c *emane.Control) error {
		nems, err := c.Manifest()
		if err != nil {
			return err
		}
		for _, component := range nems[0].Components {
			if component.Layer != emane.MAC {
				continue
			}
			values, err := c.Statistics(component.BuildID, "avgTimedEventLatency")
			if err != nil {
				return err
			}
			average, _ = values["avgTimedEventLatency"].(float64)
		}
		return nil
	})
}

func (b *emaneBed) nodes() []node { return b.all }

// cpu returns the time of all processes by the scheduler's own account, which is not rounded to ticks.
func (b *emaneBed) cpu() (total time.Duration, err error) {
	for _, p := range b.processes {
		threads, err := procfs.AllThreads(p.command.Process.Pid)
		if err != nil || len(threads) == 0 {
			return 0, fmt.Errorf("EMANE with the process id %d is gone", p.command.Process.Pid)
		}
		for _, thread := range threads {
			used, err := thread.Schedstat()
			if err != nil {
				return 0, err
			}
			total += time.Duration(used.RunningNanoseconds)
		}
	}
	return total, nil
}

func (b *emaneBed) close() (err error) {
	if b.publisher != nil {
		err = b.publisher.Close()
	}
	for _, p := range b.processes {
		if p.command.Process != nil {
			_ = p.command.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, p := range b.processes {
		if p.command.Process != nil {
			_ = p.command.Wait() // ended by a signal
		}
		err = errors.Join(err, p.logErrors(), p.log.Close())
	}
	for _, n := range b.all {
		err = errors.Join(err, n.namespace.Close())
	}
	if b.hub != nil {
		err = errors.Join(err, b.hub.Close())
	}
	if b.settings.logs == "" && b.directory != "" {
		err = errors.Join(err, os.RemoveAll(b.directory))
	}
	return err
}

// logErrors returns an error if a process has logged any, because its figures would then not be EMANE's usual
// ones.
func (p *process) logErrors() error {
	text, err := os.ReadFile(p.log.Name())
	for _, line := range bytes.Split(text, []byte("\n")) {
		if bytes.Contains(line, []byte(" ERROR ")) || bytes.Contains(line, []byte(" ABORT ")) {
			return fmt.Errorf("%s: %s", p.log.Name(), line)
		}
	}
	return err
}
