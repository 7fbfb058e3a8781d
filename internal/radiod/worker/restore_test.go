package worker

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// recorder keeps what a manager says for the results.
type recorder struct {
	mu   sync.Mutex
	gaps []runapi.RadioGap
	last map[string]figures.Node // by node
}

func (r *recorder) Record(_ string, gaps []runapi.RadioGap, last []figures.Network) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, gaps...)
	if r.last == nil {
		r.last = map[string]figures.Node{}
	}
	for _, n := range last {
		for i := range n.Nodes {
			r.last[n.Nodes[i].Node] = n.Nodes[i]
		}
	}
	return nil
}

// gap returns the only gap of a kind.
func (r *recorder) gap(t *testing.T, kind string) runapi.RadioGap {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	of := slices.DeleteFunc(slices.Clone(r.gaps), func(g runapi.RadioGap) bool { return g.Gap != kind })
	if len(of) != 1 {
		t.Fatalf("gaps %+v; want one %s", r.gaps, kind)
	}
	return of[0]
}

// radiod is a parent and the state folder of its workers.
type radiodBed struct {
	parent    *holder.Holder
	directory string
	engine    driver.Options // of its workers; they raise the whole process if it says so
}

func newRadiod(t *testing.T) radiodBed {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	return radiodBed{parent: &holder.Holder{}, directory: t.TempDir()}
}

// worker starts another worker, which restores what the earlier one left.
func (r radiodBed) worker(t *testing.T) (*Manager, *recorder) {
	t.Helper()
	m, held := managerOf(t, r.parent, r.directory, r.engine)
	return m, restored(t, m, held)
}

// restored restores what an earlier worker left, and keeps what is said for the results.
func restored(t *testing.T, m *Manager, held map[string]int) *recorder {
	t.Helper()
	results := &recorder{}
	m.Options.Recorder, m.Networks.Recorder = results, results
	if err := m.Restore(held); err != nil {
		t.Logf("restore: %v", err)
	}
	return results
}

// seen notes that a worker was there at a time.
func (r radiodBed) seen(t *testing.T, m *Manager) (at int64) {
	t.Helper()
	before := clock.Realtime()
	eventually(t, "the data plane is seen", func() bool { return m.folder.LastSeen(state.Plane) >= before })
	return before
}

// slow is a network whose frames are under way for a long time.
func slow(uid string, pods ...string) *v1alpha1.RadioNetwork {
	n := networkOf(uid, "vhf", pods...)
	n.Spec.Waveform.Link.Delay = "1h"
	return n
}

// sendTo sends broadcasts, which need no address resolution.
func (p *pod) sendBroadcasts(t *testing.T, count int) {
	t.Helper()
	p.do(t, func() error {
		conn, err := net.Dial("udp4", "198.18.9.255:7000")
		if err != nil {
			return err
		}
		defer conn.Close()
		for range count {
			if _, err := conn.Write([]byte("hello")); err != nil {
				return err
			}
		}
		return nil
	})
}

func counted(m *Manager, node string) (c figures.Node) {
	for _, n := range m.Counters(false) {
		for i := range n.Nodes {
			if n.Nodes[i].Node == node {
				c = n.Nodes[i]
			}
		}
	}
	return c
}

func TestAnotherWorkerGoesOnCountingAndNamesWhatWasUnderWay(t *testing.T) {
	r := newRadiod(t)
	m, _ := r.worker(t)
	set(t, m, slow("run", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	one.sendBroadcasts(t, 7)
	eventually(t, "7 frames are under way", func() bool { return counted(m, "node-1").InFlight == 7 })
	seen := r.seen(t, m)
	m.Close() // as if it had died
	next, results := r.worker(t)
	if c := counted(next, "node-1"); c.FramesSent != 7 || c.InFlight != 0 || c.Drops[radio.Restarted] != 7 {
		t.Errorf("counters %+v; want 7 sent, all of them lost", c.Counters)
	}
	gap := results.gap(t, "radiodRestarted")
	if gap.FramesLost != 7 || gap.Node != "" || gap.FromNanoseconds < seen || gap.ToNanoseconds < gap.FromNanoseconds {
		t.Errorf("gap %+v; want 7 frames lost at all nodes, from when the worker was last seen (after %d) to now", gap, seen)
	}
	next.Close()
	_, results = r.worker(t)
	if gap := results.gap(t, "radiodRestarted"); gap.FramesLost != 0 {
		t.Errorf("the next restart names %d frames lost again", gap.FramesLost)
	}
}

func TestAPodThatWentWhileRadiodWasDownLeavesItsCountersAndAGap(t *testing.T) {
	r := newRadiod(t)
	m, _ := r.worker(t)
	set(t, m, slow("run", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	one.sendBroadcasts(t, 3)
	eventually(t, "3 frames are under way", func() bool { return counted(m, "node-1").InFlight == 3 })
	r.seen(t, m)
	m.Close()
	r.parent.Close()
	one.end()
	next, results := r.worker(t)
	if attached, message, _ := statusOf(next, "runvhf"); attached != 1 || message != "" {
		t.Errorf("%d attached, message %q; want 1 and none", attached, message)
	}
	if gap := results.gap(t, "attachmentLost"); gap.Node != "node-1" || gap.ToNanoseconds != 0 || !strings.Contains(gap.Reason, "namespace is gone") {
		t.Errorf("gap %+v; want one of node-1 that has not ended and says why", gap)
	}
	if last := results.last["node-1"]; last.FramesSent != 3 || last.Drops[radio.Restarted] != 3 || results.gap(t, "radiodRestarted").FramesLost != 3 {
		t.Errorf("last counters %+v; want 3 sent and lost, and a gap that says so", last.Counters)
	}
	for _, kind := range []string{"attachments", "counters"} {
		if files, _ := filepath.Glob(filepath.Join(r.directory, kind, "*")); len(files) != 1 {
			t.Errorf("%s %v; want the other pod's only", kind, files)
		}
	}
}

func TestATAPThatCannotBeTakenUpIsTriedAgainAndNamed(t *testing.T) {
	r := newRadiod(t)
	m, _ := r.worker(t)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	r.seen(t, m)
	m.Close()
	r.parent.Close()
	// A TAP can be opened once.
	var taken int
	one.do(t, func() (err error) {
		taken, err = tap.Open("vhf", one.index(t))
		return err
	})
	next, results := r.worker(t)
	if attached, message, _ := statusOf(next, "runvhf"); attached != 1 || !strings.Contains(message, "node-1 has no radio since radiod was restarted") {
		t.Fatalf("%d attached, message %q; want 1 and a message that names node-1", attached, message)
	}
	lost := results.gap(t, "attachmentLost")
	if lost.Node != "node-1" || lost.ToNanoseconds != 0 {
		t.Errorf("gap %+v; want one of node-1 that has not ended", lost)
	}
	next.Retry(time.Now()) // too early, or of no use: the TAP is still taken
	closeDescriptor(t, taken)
	for now := time.Now(); counted(next, "node-1").Node == "" && now.Before(time.Now().Add(time.Hour)); now = now.Add(100 * time.Millisecond) {
		next.Retry(now)
	}
	if attached, message, _ := statusOf(next, "runvhf"); attached != 2 || message != "" {
		t.Errorf("%d attached, message %q; want 2 and none", attached, message)
	}
	results.gaps = results.gaps[len(results.gaps)-1:]
	if ended := results.gap(t, "attachmentLost"); ended.FromNanoseconds != lost.FromNanoseconds || ended.ToNanoseconds <= ended.FromNanoseconds {
		t.Errorf("gap %+v; want the end of %+v", ended, lost)
	}
	at := two.listenUDP(t, "198.18.9.2:1883")
	eventually(t, "frames flow again", func() bool { return one.reachesUDP(t, "198.18.9.2:1883", at) })
}

func TestAfterARebootNothingOfBeforeIsTakenUp(t *testing.T) {
	r := newRadiod(t)
	m, _ := r.worker(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	one := newPod(t, "pod-1")
	one.attach(t, m, "vhf")
	m.Close()
	r.parent.Close()
	if err := os.WriteFile(filepath.Join(r.directory, "boot-id"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The namespace has the same number, as it may after a boot.
	next, results := r.worker(t)
	if attached, _, _ := statusOf(next, "runvhf"); attached != 0 || next.members.Attachment(membership.Key{PodUID: "pod-1", Interface: "vhf"}) != nil {
		t.Error("an attachment of before the boot was taken up")
	}
	if gap := results.gap(t, "attachmentLost"); !strings.Contains(gap.Reason, "rebooted") {
		t.Errorf("gap %+v; want one that says why", gap)
	}
	if files, _ := filepath.Glob(filepath.Join(r.directory, "[ac]*", "*")); len(files) != 0 {
		t.Errorf("state is left: %v", files)
	}
}

func TestADetachedNodesLastFramesAreCounted(t *testing.T) {
	r := newRadiod(t)
	m, results := r.worker(t)
	n := networkOf("run", "vhf", "pod-1", "pod-2")
	n.Spec.Waveform.Link.Delay = "1s"
	set(t, m, n)
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	one.sendBroadcasts(t, 5)
	eventually(t, "5 frames are under way", func() bool { return counted(m, "node-1").FramesSent == 5 })
	if answer := m.Serve(one.request("DEL", "vhf"), nil); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if last := results.last["node-1"]; last.FramesSent != 5 || last.Settings["vhf.mtu"] != "1400" {
		t.Errorf("last counters %+v, settings %v; want 5 sent and an MTU of 1400", last.Counters, last.Settings)
	}
	var last figures.Node
	eventually(t, "the node's frames have arrived", func() bool {
		if c := counted(m, "node-1"); c.Node != "" {
			last = c
		}
		return last.Released == 5
	})
	if again := counted(m, "node-1"); last.InFlight != 0 || again.Node != "" {
		t.Errorf("in flight %d, and then %+v; want 0, and the node to be forgotten", last.InFlight, again)
	}
}

// inhabit gives the pod's namespace a process, as a runtime does.
func (p *pod) inhabit(t *testing.T) {
	t.Helper()
	process := exec.Command("sleep", "600")
	p.do(t, process.Start)
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
}

func (p *pod) index(t *testing.T) int { return p.link(t, "vhf").Attrs().Index }

func closeDescriptor(t *testing.T, fd int) {
	t.Helper()
	if err := os.NewFile(uintptr(fd), "TAP").Close(); err != nil { //nolint:gosec // a descriptor is not negative
		t.Fatal(err)
	}
}

func TestOrphansAreFoundByTheirOwnersAndRemoved(t *testing.T) {
	r := newRadiod(t)
	m, _ := r.worker(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	member, orphaned, stranger := newPod(t, "pod-1"), newPod(t, "pod-2"), newPod(t, "pod-3")
	member.attach(t, m, "vhf")
	instance, err := m.folder.Instance()
	if err != nil {
		t.Fatal(err)
	}
	for p, owner := range map[*pod]string{orphaned: instance + " pod-2", stranger: "another-radiod pod-3"} {
		p.inhabit(t)
		leave(t, p, owner)
	}
	member.inhabit(t)
	half, making, err := tap.Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tap.Destroy(half) })
	died, forgotten, err := tap.Create()
	if err != nil {
		t.Fatal(err)
	}
	closeDescriptor(t, died)
	if err := m.RemoveOrphans(); err != nil {
		t.Fatal(err)
	}
	_, makingErr := net.InterfaceByName(making)
	_, forgottenErr := net.InterfaceByName(forgotten)
	for what, c := range map[string][2]bool{
		"a member's radio":                 {member.has(t, "vhf"), true},
		"the radio of a pod that is none":  {orphaned.has(t, "vhf"), false},
		"another radiod's radio":           {stranger.has(t, "vhf"), true},
		"a TAP that is just being made":    {makingErr == nil, true},
		"a TAP whose maker died meanwhile": {forgottenErr == nil, false},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is there: %v; want %v", what, c[0], c[1])
		}
	}
	m.members.Attachment(membership.Key{PodUID: "pod-1", Interface: "vhf"}).Namespace.Inode = 1 // no namespace has it
	if err := m.RemoveOrphans(); err != nil || member.has(t, "vhf") {
		t.Errorf("an attachment without a namespace is still there (%v)", err)
	}
}

// leave puts a radio without a record into a pod.
func leave(t *testing.T, p *pod, owner string) {
	t.Helper()
	fd, temporary, err := tap.Create()
	if err != nil {
		t.Fatal(err)
	}
	i, err := podnet.ParseInterface("vhf", "02:02:00:00:00:09", "198.18.9.9/24", 1400, false)
	if err != nil {
		t.Fatal(err)
	}
	i.Owner = owner
	if err := podnet.Move(temporary, i, p.namespace, 0); err != nil {
		t.Fatal(err)
	}
	err = netns.Do(p.namespace, func() error { _, _, err := podnet.SetUp(temporary, i); return err })
	if err != nil {
		t.Fatal(err)
	}
	closeDescriptor(t, fd)
}

func TestFramesThatNobodyReadBelongToTheRestartAndNotToTheLoad(t *testing.T) {
	r := newRadiod(t)
	m, _ := r.worker(t)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	r.seen(t, m)
	m.Close() // as if it had died
	one.sendBroadcasts(t, podnet.QueueLength+2000)
	next, results := r.worker(t)
	next.ReadRings()
	c := counted(next, "node-1")
	gap := results.gap(t, "radiodRestarted")
	if c.RingRestarted == 0 || c.RingDrops != 0 || gap.FramesLost != c.RingRestarted {
		t.Fatalf("%d dropped in the restart, %d else, %d in the gap; want all of them in the restart and in its gap", c.RingRestarted, c.RingDrops, gap.FramesLost)
	}
	if want := fmt.Sprintf("which had no room for %d more frames", c.RingRestarted); !strings.Contains(gap.Reason, want) {
		t.Errorf("reason %q; want %q in it", gap.Reason, want)
	}
	drops := map[string]uint64{}
	c.EachDrop(func(reason string, frames uint64) { drops[reason] = frames })
	if drops["tapRing"] != 0 || drops["radiodRestarted"] != c.RingRestarted {
		t.Errorf("dropped are %v; want what the gap says", drops)
	}
	next.Close()
	_, results = r.worker(t)
	if gap := results.gap(t, "radiodRestarted"); strings.Contains(gap.Reason, "no room") {
		t.Errorf("the next restart names them again: %+v", gap)
	}
}

func TestFramesFlowWhileOneWorkerEndsAndAnotherTakesOver(t *testing.T) {
	r := newRadiod(t)
	process, connect := startPlane(t)
	options := dataplane.ProcessOptions{StateDirectory: r.directory}
	next := func(connect func(dataplane.ProcessOptions) *dataplane.Client) (*Manager, *recorder) {
		m, held := managerOn(t, r.parent, r.directory, connect(options))
		results := restored(t, m, held)
		return m, results
	}
	first, _ := next(connect)
	set(t, first, networkOf("run", "vhf", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, first, "vhf")
	two.attach(t, first, "vhf")
	at := two.listenUDP(t, "198.18.9.2:7000")
	arrives := func(when string) {
		t.Helper()
		within(t, "a datagram arrives "+when, func() bool { return one.reachesUDP(t, "198.18.9.2:7000", at) })
	}
	arrives("with the first worker")
	before := counted(first, "node-1").FramesSent
	first.Close()
	arrives("without a worker")
	second, results := next(connect)
	set(t, second, networkOf("run", "vhf", "pod-1", "pod-2"))
	if err := second.Options.Plane.DropLeft(); err != nil {
		t.Fatal(err)
	}
	arrives("with the second worker")
	if c := counted(second, "node-1"); c.FramesSent < before+2 || c.Drops[radio.Restarted] != 0 || len(results.gaps) != 0 {
		t.Errorf("%d frames sent after %d, %d lost, gaps %+v; want two more, and no loss", c.FramesSent, before, c.Drops[radio.Restarted], results.gaps)
	}
	r.seen(t, second)
	killed := clock.Realtime()
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.Close()
	_, another := startPlane(t)
	third, results := next(another)
	arrives("with another data plane")
	if gap := results.gap(t, "radiodRestarted"); gap.FromNanoseconds > killed+int64(time.Second) || gap.ToNanoseconds < killed {
		t.Errorf("gap %+v; want one from before the data plane was killed at %d", gap, killed)
	}
	if answer := third.Serve(one.request("DEL", "vhf"), nil); answer.Error != "" || one.has(t, "vhf") {
		t.Errorf("DEL: %q, and the interface stays: %v", answer.Error, one.has(t, "vhf"))
	}
}
