package emane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// It starts the installed EMANE with rendered files, in its own namespace.
func TestARealEMANETakesFilesEventsAndRequests(t *testing.T) {
	installed := testtool.EMANE(t)
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	byPath := pipe()
	byPath.Waveform.RFPipe.PHY.Pathloss = v1alpha1.PathlossScenario
	for name, spec := range map[string]*v1alpha1.RadioNetworkSpec{"rfpipe": byPath, "tdma": slotted()} {
		t.Run(name, func(t *testing.T) {
			namespace, hub := newNamespace(t), newNamespace(t)
			err := netns.Do(namespace, func() error {
				if err := channels(hub); err != nil {
					return err
				}
				stop, err := startEMANE(t, installed, spec)
				if err != nil {
					return err
				}
				defer stop()
				return converse(t, spec, hub)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// EMANE checks parameters by its manifests. The pod's message has its last words.
func TestARealEMANENamesAParameterThatItDoesNotTakeWithItsValue(t *testing.T) {
	installed := testtool.EMANE(t)
	for name, c := range map[string]struct{ parameter, value, want string }{
		"out of its range": {"unicastrate", "99", "Out of range unicastrate set to 99 [1,12]"},
		"no number":        {"mode", "fast", "Parameter mode set to fast"},
		"unknown":          {"fairness", "1", "Parameter not registered fairness"},
	} {
		spec, p := wifi(), process()
		spec.Waveform.EMANE.Parameters = []v1alpha1.EMANEParameter{{Layer: "mac", Name: c.parameter, Values: []string{c.value}}}
		p.Directory, p.DTDs = t.TempDir(), filepath.Join(installed, "share", "emane", "dtd")
		command, err := commandOf(installed, spec, &p)
		if err != nil {
			t.Fatal(err)
		}
		if said, err := command.CombinedOutput(); err == nil || !strings.Contains(string(said), c.want) {
			t.Errorf("%s: %v: %s; want %s", name, err, said, c.want)
		}
	}
}

// commandOf is EMANE of the first member, with its files written.
func commandOf(installed string, spec *v1alpha1.RadioNetworkSpec, p *Process) (*exec.Cmd, error) {
	return commandFor(installed, spec, &spec.Members[0], p)
}

func commandFor(installed string, spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member, p *Process) (*exec.Cmd, error) {
	files, err := Render(spec, member, *p)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(p.Directory, f.Name), f.Text, 0o600); err != nil {
			return nil, err
		}
	}
	command := exec.Command(filepath.Join(installed, "bin", "emane"), "-l", "2", Platform)
	command.Dir, command.Env = p.Directory, append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(installed, "lib"))
	return command, nil
}

func newNamespace(t *testing.T) *os.File {
	t.Helper()
	namespace, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	return namespace
}

// channels makes the device of EMANE's channels in the calling thread's namespace, and its other end in another.
func channels(hub *os.File) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "ota0"}, PeerName: "hub0", PeerNamespace: netlink.NsFd(hub.Fd())}
	if err := errors.Join(netlink.LinkSetUp(lo), netlink.LinkAdd(veth), netns.Do(hub, func() error { return setUp("hub0", "10.99.0.2/16") })); err != nil {
		return err
	}
	return setUp("ota0", "10.99.0.1/16")
}

func setUp(name, text string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(text)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(link, address), netlink.LinkSetUp(link))
}

func startEMANE(t *testing.T, installed string, spec *v1alpha1.RadioNetworkSpec) (stop func(), err error) {
	t.Helper()
	p := process()
	p.Directory, p.DTDs = t.TempDir(), filepath.Join(installed, "share", "emane", "dtd")
	command, err := commandOf(installed, spec, &p)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.Directory, "log"))
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() {
		_, _ = command.Process.Kill(), command.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s", text)
		}
	}, nil
}

// converse publishes events from the channel's other end until EMANE has counted them, and changes a parameter.
func converse(t *testing.T, spec *v1alpha1.RadioNetworkSpec, hub *os.File) error {
	var publisher *Publisher
	err := netns.Do(hub, func() (err error) {
		publisher, err = NewPublisher(context.Background(), DefaultEventGroup, "hub0", 1)
		return err
	})
	if err != nil {
		return err
	}
	defer publisher.Close()
	feed, err := NewFeed(spec, compiled(t))
	if err != nil {
		return err
	}
	if _, _, _, err := feed.Changes(time.Second); err != nil {
		return err
	}
	var s []Statistics
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		connection, err := net.DialTimeout("tcp4", DefaultControl.String(), time.Second)
		if err != nil {
			continue
		}
		c := NewControl(connection, 10*time.Second)
		s, err = Scrape(nil, c, namesOf(1, 2))
		if err == nil && heard(spec, s) {
			return errors.Join(quieten(c), askByShell(c), c.Close())
		}
		if err := errors.Join(err, c.Close(), publisher.Publish(feed.All())); err != nil {
			return err
		}
		if spec.Waveform.TDMA != nil {
			schedule, err := Schedule(spec)
			if err != nil {
				return err
			}
			if err := publisher.Publish([]Event{ScheduleFor(1, schedule)}); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("after a minute: %+v: want pathloss from 2 NEMs, and a schedule of TDMA", s)
}

func heard(spec *v1alpha1.RadioNetworkSpec, s []Statistics) bool {
	return len(s) == 1 && s[0].NEM == 1 && s[0].Pathloss == 2 && (spec.Waveform.TDMA == nil) == (s[0].Schedules == 0)
}

// askByShell asks what the control port has of each kind, from all layers.
func askByShell(c *Control) error {
	shell, err := NewShell(c)
	if err != nil {
		return err
	}
	for what, want := range map[string]string{"stat": "numUpstreamPacketsBroadcastRx0", "table": "PathlossEventInfoTable", "config": "systemnoisefigure"} {
		var said strings.Builder
		if err := shell.Command(&said, "get", what, "all"); err != nil || !strings.Contains(said.String(), want) {
			return fmt.Errorf("get %s all: %v: %s; want %s in it", what, err, said.String(), want)
		}
	}
	return nil
}

// quieten changes a parameter of the physical layer.
func quieten(c *Control) error {
	nems, err := c.Manifest()
	if err != nil {
		return err
	}
	for _, component := range nems[0].Components {
		if component.Layer == PHY {
			if err := c.Configure(component.BuildID, map[string]any{"txpower": -10.0}); err != nil {
				return err
			}
			configured, err := c.Configuration(component.BuildID)
			if power := configured["txpower"]; err == nil && (len(power) != 1 || power[0] != -10.0 || len(configured["bandwidth"]) != 1) {
				err = fmt.Errorf("the configuration is %v; want txpower -10, and a bandwidth", configured)
			}
			return err
		}
	}
	return errors.New("no physical layer")
}
