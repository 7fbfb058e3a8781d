package networks

import (
	"encoding/binary"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

var at, silence, loss = radiodtest.At, radiodtest.Silence, radiodtest.LossOf

// onAir are networks with a running network of two nodes whose radios are pairs of sockets.
type onAir struct {
	*Networks
	network *network
	one     int
	two     int
	sent    uint64
}

func newOnAir(t *testing.T, spec *v1alpha1.RadioNetworkSpec) *onAir {
	t.Helper()
	loops, err := driver.New(driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plane := dataplane.New(loops)
	t.Cleanup(func() { _ = plane.Close() })
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := &onAir{}
	o.Networks, err = New(Options{StateDirectory: t.TempDir(), Folder: folder, Plane: plane, Log: slog.New(slog.DiscardHandler), Changed: func(string) {}, Silenced: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	object := &v1alpha1.RadioNetwork{Spec: *spec}
	object.UID, object.Generation = "run", 1
	set(t, o.Networks, object)
	o.network = o.networks["run"]
	if err := o.network.start(); err != nil {
		t.Fatal(err)
	}
	o.one, o.two = o.attachSockets(t, 1), o.attachSockets(t, 2)
	return o
}

func (o *onAir) attachSockets(t *testing.T, nem int) int {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	_, err = o.Plane.Attach(&dataplane.Port{Network: "run", Descriptor: fds[1], Name: map[int]string{1: "red", 2: "blue"}[nem], NEM: nem, MAC: radio.MAC(nem)})
	if err != nil {
		t.Fatal(err)
	}
	return fds[0]
}

// send returns the moments before the frame was sent and after the radio had taken it.
func (o *onAir) send(t *testing.T) (before, after int64) {
	t.Helper()
	frame := make([]byte, 64)
	copy(frame, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	binary.BigEndian.PutUint64(frame[radio.HeaderLength:], o.sent)
	before = clock.Realtime()
	if _, err := unix.Write(o.one, frame); err != nil {
		t.Fatal(err)
	}
	o.sent++
	eventually(t, "the radio takes the frame", func() bool {
		s, err := o.Plane.Snapshot("run", false)
		return err == nil && s.Ports[0].FramesSent == o.sent
	})
	return before, clock.Realtime()
}

// arrived lists the frames that have arrived, which takes no time on links without delay.
func (o *onAir) arrived(t *testing.T) map[uint64]bool {
	t.Helper()
	all, frame := map[uint64]bool{}, make([]byte, 2000)
	for {
		if _, err := unix.Read(o.two, frame); err == unix.EAGAIN {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[binary.BigEndian.Uint64(frame[radio.HeaderLength:])] = true
	}
}

func instant(t0 time.Time, changes ...v1alpha1.TimedRadioChange) *v1alpha1.RadioNetworkSpec {
	return &v1alpha1.RadioNetworkSpec{Network: "wan", MTU: 1400, T0: &metav1.MicroTime{Time: t0}, Changes: changes,
		Waveform: v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Limit: 1000}}}
}

func TestARunningNetworkCarriesOutItsChangesByItself(t *testing.T) {
	// Twice from lossless to lossy and back: by a change of the link and by silence.
	const step = 200 * time.Millisecond
	t0 := time.Now()
	o := newOnAir(t, instant(t0, at(step, "", "", loss("100%")), at(2*step, "", "", loss("0%")), silence(3*step, true), silence(4*step, false)))
	must, mustNot := map[uint64]bool{}, map[uint64]bool{}
	for time.Since(t0) < 5*step {
		number, carriedOut := o.sent, int64(o.changes.applied.Load())
		before, after := o.send(t)
		first, last := (before-t0.UnixNano())/int64(step), (after-t0.UnixNano())/int64(step)
		switch {
		case carriedOut > first:
			t.Errorf("%d changes carried out before change %d was due", carriedOut, first+1)
		case carriedOut == last: // all that was due when the frame was sent, and none fell due meanwhile
			map[bool]map[uint64]bool{true: must, false: mustNot}[carriedOut%2 == 0][number] = true
		}
		time.Sleep(2 * time.Millisecond)
	}
	arrived := o.arrived(t)
	for number := range must {
		if !arrived[number] {
			t.Errorf("frame %d was lost, although the link lost none at its time", number)
		}
	}
	for number := range mustNot {
		if arrived[number] {
			t.Errorf("frame %d arrived, although the link lost all at its time", number)
		}
	}
	eventually(t, "all changes have been carried out", func() bool { return o.changes.applied.Load() == 4 })
	t.Logf("%d frames had to arrive, %d had to be lost, %d changes were late", len(must), len(mustNot), o.changes.late.Load())
}

func TestAChangeThatIsAppendedWhileTheNetworkRunsIsApplied(t *testing.T) {
	o := newOnAir(t, instant(time.Now(), at(time.Hour, "", "", loss("50%"))))
	object := o.network.object.DeepCopy()
	object.Generation = 2
	soon := time.Since(object.Spec.T0.Time) + 300*time.Millisecond
	object.Spec.Changes = append([]v1alpha1.TimedRadioChange{at(soon, "red", "blue", loss("100%"))}, object.Spec.Changes...)
	set(t, o.Networks, object)
	eventually(t, "the change has been carried out", func() bool { return o.changes.applied.Load() == 1 })
	if now := time.Since(object.Spec.T0.Time); now < soon {
		t.Errorf("the change was carried out at %v; want no earlier than %v", now, soon)
	}
	o.send(t)
	if got := o.arrived(t); len(got) != 0 {
		t.Errorf("frames %v arrived over a link that loses all", got)
	}
}

func TestAnOverdueChangeIsCarriedOutAtOnceAndNotedAsLate(t *testing.T) {
	o := newOnAir(t, instant(time.Now().Add(-time.Minute)))
	object := o.network.object.DeepCopy()
	object.Generation = 2
	object.Spec.Changes = []v1alpha1.TimedRadioChange{at(time.Second, "", "", loss("100%"))}
	set(t, o.Networks, object)
	if _, _ = o.send(t); len(o.arrived(t)) != 0 {
		t.Error("a frame arrived: the change was not carried out")
	}
	if carriedOut, late := o.changes.applied.Load(), o.changes.late.Load(); carriedOut != 1 || late != 1 {
		t.Errorf("%d changes carried out, %d late; want one, late", carriedOut, late)
	}
	due := object.Spec.T0.Add(time.Second).UnixNano()
	for _, want := range []int{1, 0} {
		times := o.Counters(nil, true)[0].LateChanges
		if len(times) != want || want == 1 && (times[0].From != due || times[0].To < due+59e9) {
			t.Errorf("late times %v; want %d, once, from %d until now", times, want, due)
		}
	}
	object = object.DeepCopy()
	object.Generation = 3
	set(t, o.Networks, object) // nothing new
	if late := o.changes.late.Load(); late != 1 {
		t.Errorf("%d changes noted as late; want the one only once", late)
	}
}

func TestAChangeOfANeighbourIsCountedByItsOwnNetworkAlone(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	for _, neighbour := range []bool{true, false} {
		o.changeCarriedOut(&dataplane.Event{Network: "run", Neighbour: neighbour, Late: time.Hour})
		want := map[bool]uint64{true: 0, false: 1}[neighbour]
		if carriedOut, late := o.changes.applied.Load(), o.changes.late.Load(); carriedOut != want || late != want {
			t.Errorf("a change of a neighbour: %v: %d changes carried out, %d late; want %d", neighbour, carriedOut, late, want)
		}
	}
}

func TestANetworkThatStartsAfterItsChangesIsRightAtOnce(t *testing.T) {
	o := newOnAir(t, instant(time.Now().Add(-time.Minute), at(time.Second, "", "", loss("100%"))))
	if _, _ = o.send(t); len(o.arrived(t)) != 0 {
		t.Error("a frame arrived over a link that loses all since long")
	}
	if late := o.changes.late.Load(); late != 0 {
		t.Errorf("%d changes noted as late, although nobody was there to be late", late)
	}
}

func set(t *testing.T, m *Networks, n *v1alpha1.RadioNetwork) {
	t.Helper()
	if err := m.Set(n); err != nil {
		t.Fatal(err)
	}
}

var eventually = testtool.Eventually
