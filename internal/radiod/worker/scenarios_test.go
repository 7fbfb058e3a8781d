package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func libraryOf(t *testing.T, directory string) *library {
	t.Helper()
	l, err := newLibrary(directory)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAScenarioIsFetchedOnceAndKeptForTheNextWorker(t *testing.T) {
	directory := t.TempDir()
	l := libraryOf(t, directory)
	digest, content := everybodyNear(t)
	from := &fakeScenarioStore{scenarios: map[string][]byte{digest: content}}
	if _, err := l.get(digest); err == nil {
		t.Fatal("a scenario that nobody has fetched is here")
	}
	if err := l.download(t.Context(), from, digest); err != nil {
		t.Fatal(err)
	}
	one, err := l.get(digest)
	two, err2 := l.get(digest)
	if err != nil || err2 != nil || one != two {
		t.Errorf("got %p, %p, %v, %v; want the same one twice", one, two, err, err2)
	}
	half := filepath.Join(l.directory, "fetching-1")
	if err := os.WriteFile(half, content[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := os.Stat(half); err == nil {
			t.Error("what a worker had fetched half when it died is still there")
		}
	}()
	if s, err := libraryOf(t, directory).get(digest); err != nil || len(s.Platforms()) != 3 {
		t.Errorf("the next worker got %v; want the scenario with its 3 platforms", err)
	}
	if from.asked != 1 {
		t.Errorf("the server was asked %d times; want once", from.asked)
	}
}

func TestAScenarioOfAnotherDigestIsRefused(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	digest, content := everybodyNear(t)
	from := &fakeScenarioStore{scenarios: map[string][]byte{digest: append([]byte("x"), content...)}}
	err := l.download(t.Context(), from, digest)
	if err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("got %v; want an error that names the digest", err)
	}
	if files, _ := os.ReadDir(l.directory); len(files) != 0 {
		t.Errorf("files %v are left; want none", files)
	}
}

func TestWhatIsNoDigestIsNamed(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	for _, text := range []string{"sha256:00", "../../etc/passwd", "sha256:" + strings.Repeat("g", 64)} {
		if _, err := l.get(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v; want an error that names it", text, err)
		}
	}
}

func TestABrokenScenarioFileIsFetchedAgain(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	digest, content := everybodyNear(t)
	if err := os.WriteFile(l.path(digest), content[:len(content)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.get(digest); err == nil || !strings.Contains(err.Error(), "fetched again") {
		t.Errorf("got %v; want an error that says that it is fetched again", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go l.fetch(ctx, &fakeScenarioStore{scenarios: map[string][]byte{digest: content}}, func(string) {})
	eventually(t, "the scenario is here", func() bool { _, err := l.get(digest); return err == nil })
}

func TestFetchingGoesOnUntilTheServerAnswers(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	digest, content := everybodyNear(t)
	from := &fakeScenarioStore{scenarios: map[string][]byte{digest: content}, err: errors.New("connection refused")}
	arrived := make(chan error, 100)
	_, _ = l.get(digest)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go l.fetch(ctx, from, func(digest string) {
		_, err := l.get(digest)
		arrived <- err
	})
	if err := <-arrived; err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v; want what the server said", err)
	}
	from.set(nil)
	for err := range arrived {
		if err == nil {
			return
		}
	}
}

func TestScenariosThatNoNetworkNeedsAreRemoved(t *testing.T) {
	b := newPhysicalBed(t, 2, rfpipeOf())
	b.play(everybodyNear(t))
	b.begin(t)
	b.ready(t)
	other := b.object.DeepCopy()
	other.UID, other.Name = "other", "other"
	other.Spec.Members = nil
	set(t, b.Manager, other)
	files := func() int {
		found, _ := filepath.Glob(filepath.Join(b.directory, scenarioFiles, "*"))
		return len(found)
	}
	if err := b.RemoveNetwork(string(b.object.UID)); err != nil || files() != 1 {
		t.Errorf("%v, %d files; want the scenario kept for the other network", err, files())
	}
	if err := b.RemoveNetwork("other"); err != nil || files() != 0 {
		t.Errorf("%v, %d files; want none", err, files())
	}
}

// radioOf a member as the waveform's settings have it.
func radioOf(t *testing.T, spec *v1alpha1.RadioNetworkSpec, node int, offset int64) nodeRadio {
	t.Helper()
	r, err := replayUntil(spec, nil, spec.T0.UnixNano()+offset)
	if err != nil {
		t.Fatal(err)
	}
	return r.waveform.(*pipes).radios.own[node-1]
}

func TestRadiosDifferByNodeAndGroupAndChangeInTime(t *testing.T) {
	patch := func(at int64, from string, p v1alpha1.RadioPatch) v1alpha1.TimedRadioChange {
		return v1alpha1.TimedRadioChange{AtNanoseconds: at, RadioChange: v1alpha1.RadioChange{From: from, Radio: &p}}
	}
	spec := physical(v1alpha1.PathlossScenario,
		patch(1, "", v1alpha1.RadioPatch{TransmitPower: ptr.To(v1alpha1.Power("1W")), Rate: ptr.To(v1alpha1.DataRate("2Mbit"))}),
		patch(2, "veh", v1alpha1.RadioPatch{Transmit: ptr.To(false), AntennaGain: ptr.To(v1alpha1.Gain("3dBi"))}),
		patch(3, "node-3", v1alpha1.RadioPatch{Transmit: ptr.To(true), Frequency: ptr.To(v1alpha1.Frequency("310MHz"))}))
	spec.Members[1].Group, spec.Members[2].Group = "veh", "veh"
	spec.Radios = []v1alpha1.Radio{{Nodes: []string{"node-1", "veh"}, TransmitPower: ptr.To(v1alpha1.Power("20dBm"))},
		{Nodes: []string{"node-3"}, NoiseFigure: ptr.To(v1alpha1.Decibel("7dB"))}}
	begin := nodeRadio{Radio: radioOf(t, physical(v1alpha1.PathlossScenario), 1, 0).Radio, RateBitsPerSecond: 1e6}
	begin.TransmitPowerDBm = 20
	for name, c := range map[string]struct {
		node   int
		at     int64
		change func(*nodeRadio)
	}{
		"its own power":                {1, 0, func(*nodeRadio) {}},
		"its group's power":            {2, 0, func(*nodeRadio) {}},
		"its own noise figure as well": {3, 0, func(r *nodeRadio) { r.NoiseFigureDB = 7 }},
		"what all change":              {1, 1, func(r *nodeRadio) { r.TransmitPowerDBm, r.RateBitsPerSecond = 30, 2e6 }},
		"what its group changes": {2, 2, func(r *nodeRadio) {
			r.TransmitPowerDBm, r.RateBitsPerSecond, r.Transmit, r.AntennaGainDBi = 30, 2e6, false, 3
		}},
		"what another's group changes": {1, 3, func(r *nodeRadio) { r.TransmitPowerDBm, r.RateBitsPerSecond = 30, 2e6 }},
		"what it changes after its own": {3, 3, func(r *nodeRadio) {
			r.TransmitPowerDBm, r.RateBitsPerSecond, r.AntennaGainDBi, r.NoiseFigureDB, r.FrequencyHertz = 30, 2e6, 3, 7, 310e6
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := begin
			c.change(&want)
			if got := radioOf(t, spec, c.node, c.at); got != want {
				t.Errorf("got %+v; want %+v", got, want)
			}
		})
	}
}

func TestWhatAWaveformCannotDoIsNamed(t *testing.T) {
	delay, rate := v1alpha1.Duration("1ms"), v1alpha1.DataRate("2Mbit")
	pipes := physical(v1alpha1.PathlossScenario, v1alpha1.TimedRadioChange{AtNanoseconds: 1e9,
		RadioChange: v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Delay: &delay}}})
	broken := physical(v1alpha1.PathlossScenario)
	broken.Waveform.RFPipe.PCR = "<pcr/>"
	slots := physical(v1alpha1.PathlossScenario, v1alpha1.TimedRadioChange{AtNanoseconds: 1e9,
		RadioChange: v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Rate: &rate}}})
	slots.Waveform = tdmaOf()
	deaf := physical(v1alpha1.PathlossScenario, jam(1e9, v1alpha1.Jammer{Name: "red", Power: ptr.To(v1alpha1.Power("1W"))}))
	retuned := slots.DeepCopy()
	retuned.Changes[0].Radio = &v1alpha1.RadioPatch{Frequency: ptr.To(v1alpha1.Frequency("1GHz"))}
	written := slots.DeepCopy()
	written.Waveform.TDMA.Schedule = schedule(1, 2, 3)
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		want string
		off  bool
	}{
		"a delay of one node":                      {pipes, `change at 1s: radio.delay and radio.jitter of "node-1"`, false},
		"a curve that is none":                     {broken, "pcr", true},
		"a jammer without interference":            {deaf, "change at 1s: jammer red", false},
		"a frequency for a schedule":               {retuned, "change at 1s: radio: frequency", false},
		"a generated schedule with two rates":      {slots, `change at 1s: radio.rate of "node-1"`, false},
		"a rate for a schedule with rates its own": {written, "change at 1s: radio.rate: the current schedule is not generated", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newReplay(c.spec, &environment{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
			if _, silent := r.snapshot(); silent != c.off {
				t.Errorf("silent: %v; want %v", silent, c.off)
			}
		})
	}
}
