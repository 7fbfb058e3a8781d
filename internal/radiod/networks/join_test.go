package networks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/podradio"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// full is a data plane that takes no more ports.
type full struct{ dataplane.Plane }

func (full) Attach(*dataplane.Port) (dataplane.PortID, error) {
	return 0, errors.New("the engine is full")
}

// capturing begins captures, and writes them until the test ends.
func capturing(t *testing.T) *capture.Recorder {
	t.Helper()
	r, err := capture.Open(capture.Options{Directory: t.TempDir(), SpoolBytes: 1 << 20, EpochOffset: clock.EpochOffset, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func radioOf(node string, nem int32) *podradio.Radio {
	r := podradio.New(membership.Attachment{NetworkUID: "run", RunUID: "experiment", PodUID: node, Interface: "wan",
		Member: v1alpha1.Member{Node: node, NEM: nem, MAC: "02:02:00:00:00:03"}}, -1)
	r.Counters = dataplane.CountersInMemory()
	return r
}

func TestCapturesEndWithARadioThatTheDataPlaneDoesNotTake(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	o.Captures, o.Plane = capturing(t), full{o.Plane}
	o.network.object.Spec.Experiment.UID = "experiment"
	o.network.object.Spec.Captures = []v1alpha1.RadioCapture{{Name: "all"}}
	for range 2 { // the CNI plugin tries again
		if err := o.Join(radioOf("green", 3)); err == nil {
			t.Fatal("it joined")
		}
	}
	eventually(t, "the capture ends", func() bool {
		samples := o.Captures.Samples("experiment", clock.Realtime())
		return len(samples) == 1 && samples[0].Ended == capture.EndDetached
	})
}

// join attaches a node whose radio is a pair of sockets.
func (o *onAir) join(t *testing.T, node string, nem int) *podradio.Radio {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	r := podradio.New(radioOf(node, int32(nem)).Attachment, fds[1])
	r.Member.MAC, r.Counters = radio.MAC(nem).String(), dataplane.CountersInMemory()
	if err := o.Join(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestACaptureThatCannotBeginAtANodeBeginsAtTheOthers(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	o.Captures = capturing(t)
	wrong := filepath.Join(o.Captures.Directory, "experiment", "film", "wan", "green")
	if err := errors.Join(os.MkdirAll(filepath.Dir(wrong), 0o700), os.WriteFile(wrong, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	const nodes = 8 // they come in any order
	o.join(t, "green", 3)
	for i := range nodes - 1 {
		o.join(t, fmt.Sprintf("node-%d", i), 4+i)
	}
	object := o.network.object.DeepCopy()
	object.Generation, object.Spec.Experiment.UID = 2, "experiment"
	object.Spec.Captures = []v1alpha1.RadioCapture{{Name: "film"}}
	if err := o.Set(object); err == nil || !strings.Contains(err.Error(), "film") {
		t.Errorf("error %v; want one that names the capture", err)
	}
	if got := len(o.Captures.Samples("experiment", clock.Realtime())); got != nodes-1 {
		t.Errorf("%d nodes are captured; want %d", got, nodes-1)
	}
}

func TestNobodyJoinsANetworkThatIsBeingRemoved(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	o.BeginRemoval("run")
	for _, engine := range []v1alpha1.Engine{"", v1alpha1.EngineEMANE} {
		r := radioOf("green", 3)
		r.Engine = engine
		if err := o.Join(r); err == nil || !strings.Contains(err.Error(), "its network was removed meanwhile") {
			t.Errorf("engine %q: error %v; want one that says so", engine, err)
		}
	}
}

func TestANetworkWhoseFileCannotBeWrittenIsSavedOnceItCan(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	directory := t.TempDir()
	folder, err := state.Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(directory, networkFiles) // as a full volume, it lets no file be written
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	changed := make(chan string, 1)
	o.Folder, o.Changed = folder, func(uid string) { changed <- uid }
	t.Cleanup(o.Close)
	later := o.network.object.DeepCopy()
	later.Generation++
	if err := o.Set(later); err == nil {
		t.Error("the error of saving is not returned")
	}
	if trouble := errors.Join(o.Status("run").Troubles...); trouble == nil || !strings.Contains(trouble.Error(), "state") {
		t.Errorf("trouble %v; want that the state cannot be written", trouble)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("after a minute its status has not changed")
	}
	if saved, err := o.Saved(); err != nil || len(saved) != 1 || saved[0].Generation != later.Generation {
		t.Errorf("saved %d networks, %v; want the changed one", len(saved), err)
	}
	if trouble := errors.Join(o.Status("run").Troubles...); trouble != nil {
		t.Errorf("trouble %v once it is saved; want none", trouble)
	}
}

// deaf is a data plane that sets no taps.
type deaf struct{ dataplane.Plane }

func (deaf) SetTap(dataplane.PortID, *framering.Tap) error { return errors.New("no memory") }

func TestACaptureWhoseFramesTheDataPlaneDoesNotPassHasNotBegun(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	o.Captures, o.Plane = capturing(t), deaf{o.Plane}
	o.join(t, "green", 3)
	object := o.network.object.DeepCopy()
	object.Generation, object.Spec.Captures = 2, []v1alpha1.RadioCapture{{Name: "film"}}
	if err := o.Set(object); err == nil || !strings.Contains(err.Error(), "green: no memory") {
		t.Errorf("error %v; want why, and the node", err)
	}
	if s := o.Status("run"); !strings.Contains(s.Message, "no memory") {
		t.Errorf("message %q; want why", s.Message)
	}
}

// busy is a data plane that takes its time to detach a port.
type busy struct {
	dataplane.Plane
	asked, free chan struct{}
}

func (b busy) Detach(id dataplane.PortID) (dataplane.PortCounters, error) {
	close(b.asked)
	<-b.free
	return b.Plane.Detach(id)
}

// ends keeps what attachments last counted.
type ends chan figures.Node

func (e ends) Record(_ string, _ []runapi.RadioGap, last []figures.Network) error {
	e <- last[0].Nodes[0]
	return nil
}

func TestOnlyTheEndOfItsNetworkWaitsForARadioThatLeaves(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	plane, last := busy{o.Plane, make(chan struct{}), make(chan struct{})}, make(ends, 1)
	o.Plane, o.Recorder = plane, last
	r := radioOf("green", 3)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	joined := podradio.New(r.Attachment, fds[1])
	joined.Counters = r.Counters
	joined.Counters.SetRingDrops(7)
	if err := o.Join(joined); err != nil {
		t.Fatal(err)
	}
	left, removed := make(chan error, 1), make(chan error, 1)
	go func() { left <- o.Leave(joined) }()
	<-plane.asked
	if s := o.Status("run"); s.Attached != 0 { // it answers
		t.Errorf("%d attached; want none", s.Attached)
	}
	nodes := o.Counters(nil, false)[0].Nodes
	if i := slices.IndexFunc(nodes, func(n figures.Node) bool { return n.Node == "green" }); i < 0 || nodes[i].RingDrops != 7 {
		t.Errorf("counted %+v; want 7 drops in green's ring, as readers would count them twice if they came back", nodes)
	}
	go func() { removed <- o.Remove("run") }()
	eventually(t, "the network is not known any more", func() bool { return o.Status("run") == nil })
	if _, err := o.Plane.Snapshot("run", false); err != nil {
		t.Errorf("%v: the network ended before its radio had left", err)
	}
	close(plane.free)
	if err := errors.Join(<-left, <-removed); err != nil {
		t.Error(err)
	}
	if n := <-last; n.Node != "green" || n.RingDrops != 7 {
		t.Errorf("last counters of %q with %d drops in its ring; want green's with 7", n.Node, n.RingDrops)
	}
}

// slow is a data plane in which frames of detached ports stay under way: so many of each in turn.
type slow struct {
	dataplane.Plane
	underWay []int
}

func (s *slow) Detach(id dataplane.PortID) (dataplane.PortCounters, error) {
	last, err := s.Plane.Detach(id)
	last.FramesSent, last.InFlight, s.underWay = uint64(id), s.underWay[0], s.underWay[1:] //nolint:gosec // few
	return last, err
}

func (*slow) Counters(dataplane.PortID) (radio.Counters, error) {
	return radio.Counters{}, errors.New("none")
}

func TestOnlyTheLatestAttachmentOfADetachedNodeIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		underWay       []int
		counted, ended int
	}{
		"with frames under way twice":      {underWay: []int{1, 1}, counted: 1, ended: 3},
		"with those of the first time":     {underWay: []int{1, 0}, counted: 0, ended: 2},
		"with those of the last time only": {underWay: []int{0, 1}, counted: 1, ended: 3},
	} {
		t.Run(name, func(t *testing.T) {
			o, recorded := newOnAir(t, instant(time.Now())), make(ends, 4)
			o.Plane, o.Recorder = &slow{o.Plane, c.underWay}, recorded
			var last uint64
			for range 2 {
				r := o.join(t, "green", 3)
				last = uint64(o.portOf(&r.Attachment)) //nolint:gosec // few
				if err := o.Leave(r); err != nil {
					t.Fatal(err)
				}
			}
			nodes := slices.DeleteFunc(o.Counters(nil, false)[0].Nodes, func(n figures.Node) bool { return n.Node != "green" })
			if len(nodes) != c.counted || len(nodes) > 0 && nodes[0].FramesSent != last {
				t.Errorf("counted %+v; want green %d times, with %d frames of its later attachment", nodes, c.counted, last)
			}
			if err := o.Remove("run"); err != nil {
				t.Fatal(err)
			}
			if len(recorded) != c.ended {
				t.Errorf("%d last counters; want %d: of each attachment as it left, of the latest as its frames end", len(recorded), c.ended)
			}
		})
	}
}
