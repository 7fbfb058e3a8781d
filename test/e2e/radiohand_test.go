//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// disturbed is how long each change by hand lasts.
const disturbed = 5 * time.Second

// threeRadios are 300 m apart in a line, and publish to each other four times a second. Their signals are at least 60 dB above
// the noise; a jammer of 100 W at 600 m is some 20 dB stronger.
func threeRadios(namespace, name string) *v1alpha1.Experiment {
	e := broadcasters(namespace, name, 3, "250ms", "bytes:200").Duration("").
		Model(func(n *v1alpha1.Network) {
			phy := widebandPHY
			phy.Pathloss = v1alpha1.PathlossFreeSpace
			n.RFPipe = &v1alpha1.RFPipeModel{PHY: phy, Rate: "175kbit", Interference: v1alpha1.InterferenceOutOfBand}
		}).Obj()
	e.Spec.Timeline = e.Spec.Timeline[:1]
	for i := range e.Spec.Nodes {
		e.Spec.Nodes[i].Position = &v1alpha1.Position{Latitude: "58.19", Longitude: v1alpha1.Degrees(fmt.Sprintf("7.9%02d", 5*i)), Altitude: "20m"}
	}
	return e
}

const jammerInTheirMidst = "jammer=noise,power=100W,latitude=58.195,longitude=7.905,altitude=20m"

var momentOfSet = regexp.MustCompile(`holds from .*, T0 \+ ([0-9.]+) s`)

// setByHand changes the network wan, and returns the time after T0 from which the change is in force.
func setByHand(t *testing.T, namespace string, arguments ...string) time.Duration {
	t.Helper()
	out := mustVignette(t, namespace, append([]string{"set", "wan"}, arguments...)...)
	found := momentOfSet.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("set %v says %q; want from when on the change holds", arguments, out)
	}
	seconds, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatalf("set %v says %q: %v", arguments, out, err)
	}
	return time.Duration(seconds * float64(time.Second))
}

// TestRadiosOfALiveClusterAreSilencedAndJammedByHand changes a running RF pipe. First one node falls silent and still receives the
// others, then a jammer stops all reception.
func TestRadiosOfALiveClusterAreSilencedAndJammedByHand(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	e := threeRadios(namespace, "hush")
	mustCreate(t, e)
	waitFor(t, e, startTimeout, v1alpha1.PhaseRunning)
	waitForT0(t, e, 6*time.Second) // the apps start 3 s after T0

	var moments []time.Duration
	for _, arguments := range [][]string{{"--from", "unit1", "transmit=false"}, {"--from", "unit1", "transmit=true"}, {jammerInTheirMidst}, {"jammer=noise,off"}} {
		moments = append(moments, setByHand(t, namespace, arguments...))
		time.Sleep(disturbed)
	}
	t.Run("it is shown", func(t *testing.T) { changesOfRadiosAreShown(t, namespace) })
	t.Run("what an RF pipe does not have is refused", func(t *testing.T) { keysOfOtherModelsAreRefused(t, namespace) })
	mustVignette(t, namespace, "stop", "hush")
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	t.Logf("changes hold from %v after T0; %+v", moments, resultsOf(t, done.UID).Messages)

	silent, jammed := window{moments[0], moments[1]}, window{moments[2], moments[3]}
	calm := []window{{3 * time.Second, silent.from}, {silent.to, jammed.from}, {jammed.to, jammed.to + disturbed}}
	all := deliveriesOf(t, done)
	wantLost(t, all, "before, between and after", calm, func(delivery) bool { return false })
	if n := wantLost(t, all, "while unit1 is silent", []window{silent}, func(d delivery) bool { return strings.HasPrefix(d.publisher, "unit1/") }); n < 20 {
		t.Errorf("%d deliveries of unit1 were lost while it was silent; want some 8 in each second", n)
	}
	wantLost(t, all, "while all are jammed", []window{jammed}, func(delivery) bool { return true })
	if changes := stateOf(t, done.UID).Plan.LiveChanges; len(changes) != len(moments) {
		t.Errorf("%d live changes on record; want the %d that were made", len(changes), len(moments))
	}
}

// window is a window of time after T0.
type window struct{ from, to time.Duration }

// wantLost wants every message between nodes in the windows to be lost on silenced or jammed links, and to arrive elsewhere. It returns the number of
// lost ones.
func wantLost(t *testing.T, all []delivery, when string, windows []window, lost func(delivery) bool) int {
	t.Helper()
	counted := map[bool]int{}
	for _, d := range all {
		for _, w := range windows {
			if d.local || d.sent < w.from+blurred || d.sent > w.to-blurred {
				continue
			}
			counted[d.lost]++
			if d.lost != lost(d) {
				t.Errorf("%s: %+v; want lost %v", when, d, lost(d))
			}
		}
	}
	t.Logf("%s: %d deliveries arrived, %d were lost", when, counted[false], counted[true])
	if n := counted[false] + counted[true]; n < 60 {
		t.Errorf("%s: %d deliveries; want some 24 in each second", when, n)
	}
	return counted[true]
}

func changesOfRadiosAreShown(t *testing.T, namespace string) {
	out := mustVignette(t, namespace, "set", "wan")
	for _, want := range []string{"rfpipe", "rate=175kbit frequency=300MHz transmitPower=25dBm", "--from unit1 transmit=false", "--from unit1 transmit=true", jammerInTheirMidst, "jammer=noise,off"} {
		if !strings.Contains(out, want) {
			t.Errorf("set without keys:\n%s\nwant %s", out, want)
		}
	}
}

func keysOfOtherModelsAreRefused(t *testing.T, namespace string) {
	for want, arguments := range map[string][]string{
		"network wan is of the model rfpipe, which has no loss: want one of rate, delay": {"loss=5%"},
		"a radio's frames reach everybody in range":                                      {"--to", "unit2", "rate=64kbit"},
		`"37" is not a power`: {"transmitPower=37"},
	} {
		if out, errs, code := vignette(t, namespace, "", append([]string{"set", "wan"}, arguments...)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("set wan %v: exit code %d, %s%s; want %s", arguments, code, out, errs, want)
		}
	}
}
