package waveforms

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// changed is a network whose link is 9.8 kbit/s with 100 ms and 1 % loss, and changes.
func changed(changes ...v1alpha1.TimedRadioChange) *v1alpha1.RadioNetworkSpec {
	rate := v1alpha1.DataRate("9.8kbit")
	return &v1alpha1.RadioNetworkSpec{Network: "wan", Seed: 7, MTU: 1400, T0: &metav1.MicroTime{Time: time.Unix(1000, 0)},
		Waveform: v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Rate: &rate, Delay: "100ms", Loss: "1%", Limit: 1000}},
		Links: []v1alpha1.GroupLink{{From: "hq", To: "*", LinkModel: v1alpha1.LinkModel{Delay: "50ms", Loss: "0%", Limit: 10,
			GilbertElliott: &v1alpha1.GilbertElliott{GoodToBad: "1%", BadToGood: "25%"}}}},
		Changes: changes}
}

var at, silence, loss = radiodtest.At, radiodtest.Silence, radiodtest.LossOf

func delay(d v1alpha1.Duration) v1alpha1.LinkPatch { return v1alpha1.LinkPatch{Delay: &d} }

// linkConfigAt is what holds at an offset from T0.
func linkConfigAt(spec *v1alpha1.RadioNetworkSpec, offset time.Duration) (config link.Config, silent bool) {
	now := int64(offset)
	if spec.T0 != nil {
		now += spec.T0.UnixNano()
	}
	r, err := newReplay(spec)
	r.advance(now - r.t0)
	if err != nil {
		panic(err) // links cannot be wrong
	}
	return configOf(r)
}

func configOf(r *replay) (link.Config, bool) {
	var n dataplane.Network
	r.waveform.model(&n)
	s := r.state()
	return link.Config{Seed: n.Link.Seed, Default: s.Links.Default, Links: s.Links.Links}, s.Silent
}

// own and downlink are the links of changed, as the model has them.
var (
	own      = link.Parameters{RateBitsPerSecond: 9800, Delay: 100 * time.Millisecond, Loss: 0.01, Limit: 1000}
	downlink = link.Parameters{Delay: 50 * time.Millisecond, Limit: 10,
		GilbertElliott: &link.GilbertElliott{GoodToBad: 0.01, BadToGood: 0.25, LossInBad: 1}}
)

func with(p link.Parameters, change func(*link.Parameters)) link.Parameters {
	change(&p)
	return p
}

func TestChangesOfALinkHoldFromTheirMomentOn(t *testing.T) {
	fromHQ := link.Link{From: "hq", To: "*", Parameters: downlink}
	rate := v1alpha1.DataRate("2Mbit")
	for name, c := range map[string]struct {
		changes []v1alpha1.TimedRadioChange
		at      time.Duration
		own     link.Parameters
		links   []link.Link
	}{
		"none yet":    {[]v1alpha1.TimedRadioChange{at(time.Minute, "", "", loss("50%"))}, time.Minute - 1, own, []link.Link{fromHQ}},
		"just now":    {[]v1alpha1.TimedRadioChange{at(time.Minute, "", "", loss("50%"))}, time.Minute, with(own, func(p *link.Parameters) { p.Loss = 0.5 }), []link.Link{fromHQ}},
		"at T0":       {[]v1alpha1.TimedRadioChange{at(0, "", "", loss("50%"))}, 0, with(own, func(p *link.Parameters) { p.Loss = 0.5 }), []link.Link{fromHQ}},
		"before T0":   {[]v1alpha1.TimedRadioChange{at(0, "", "", loss("50%"))}, -1, own, []link.Link{fromHQ}},
		"everybody *": {[]v1alpha1.TimedRadioChange{at(0, "*", "*", loss("50%"))}, 0, with(own, func(p *link.Parameters) { p.Loss = 0.5 }), []link.Link{fromHQ}},
		"the later of two at one moment": {[]v1alpha1.TimedRadioChange{at(1, "", "", loss("50%")), at(1, "", "", loss("20%"))}, 1,
			with(own, func(p *link.Parameters) { p.Loss = 0.2 }), []link.Link{fromHQ}},
		"out of order": {[]v1alpha1.TimedRadioChange{at(2, "", "", loss("50%")), at(1, "", "", loss("20%"))}, 2,
			with(own, func(p *link.Parameters) { p.Loss = 0.5 }), []link.Link{fromHQ}},
		"a link that is there": {[]v1alpha1.TimedRadioChange{at(0, "hq", "", delay("7ms"))}, 0, own,
			[]link.Link{{From: "hq", To: "*", Parameters: with(downlink, func(p *link.Parameters) { p.Delay = 7 * time.Millisecond })}}},
		"loss ends the Gilbert-Elliott model": {[]v1alpha1.TimedRadioChange{at(0, "hq", "*", loss("3%"))}, 0, own,
			[]link.Link{{From: "hq", To: "*", Parameters: with(downlink, func(p *link.Parameters) { p.Loss, p.GilbertElliott = 0.03, nil })}}},
		"the Gilbert-Elliott model ends loss": {[]v1alpha1.TimedRadioChange{at(0, "", "", v1alpha1.LinkPatch{GilbertElliott: &v1alpha1.GilbertElliott{
			GoodToBad: "2%", BadToGood: "20%", LossInBad: "90%", LossInGood: "1%"}})}, 0,
			with(own, func(p *link.Parameters) {
				p.Loss, p.GilbertElliott = 0, &link.GilbertElliott{GoodToBad: 0.02, BadToGood: 0.2, LossInBad: 0.9, LossInGood: 0.01}
			}), []link.Link{fromHQ}},
		"a new link begins as the network's own": {[]v1alpha1.TimedRadioChange{at(0, "", "", loss("5%")), at(1, "red", "blue", delay("1s"))}, 1,
			with(own, func(p *link.Parameters) { p.Loss = 0.05 }),
			[]link.Link{fromHQ, {From: "red", To: "blue", Parameters: with(own, func(p *link.Parameters) { p.Loss, p.Delay = 0.05, time.Second })}}},
		"from all to one": {[]v1alpha1.TimedRadioChange{at(0, "", "hq", delay("1s"))}, 0, own,
			[]link.Link{fromHQ, {From: "*", To: "hq", Parameters: with(own, func(p *link.Parameters) { p.Delay = time.Second })}}},
		"everything": {[]v1alpha1.TimedRadioChange{at(0, "", "", v1alpha1.LinkPatch{Rate: &rate, Delay: ptr.To(v1alpha1.Duration("5ms")),
			Jitter: ptr.To(v1alpha1.Duration("2ms")), JitterDistribution: ptr.To(v1alpha1.JitterParetoNormal), JitterCorrelation: ptr.To(v1alpha1.Percent("25%")), Reorder: ptr.To(true),
			Loss: ptr.To(v1alpha1.Percent("0%")), LossCorrelation: ptr.To(v1alpha1.Percent("30%")), Duplicate: ptr.To(v1alpha1.Percent("4%")), Corrupt: ptr.To(v1alpha1.Percent("2%")), Limit: ptr.To[int32](5), LimitBytes: ptr.To[int64](6000)})}, 0,
			link.Parameters{RateBitsPerSecond: 2e6, Delay: 5 * time.Millisecond, Jitter: 2 * time.Millisecond, Distribution: link.ParetoNormal, JitterCorrelation: 0.25, Reorder: true, LossCorrelation: 0.3, Corrupt: 0.02,
				Duplicate: 0.04, Limit: 5, LimitBytes: 6000}, []link.Link{fromHQ}},
	} {
		t.Run(name, func(t *testing.T) {
			got, silent := linkConfigAt(changed(c.changes...), c.at)
			want := link.Config{Seed: 7, Default: c.own, Links: c.links}
			if !reflect.DeepEqual(got, want) || silent {
				t.Errorf("got %+v, silent %v; want %+v", got, silent, want)
			}
		})
	}
}

func TestSilenceHoldsUntilAnotherChangeSaysOtherwise(t *testing.T) {
	spec := changed(silence(10, true), at(15, "", "", loss("2%")), silence(20, false))
	for offset, want := range map[time.Duration]bool{9: false, 10: true, 19: true, 20: false} {
		if _, silent := linkConfigAt(spec, offset); silent != want {
			t.Errorf("at %d: silent %v; want %v", offset, silent, want)
		}
	}
	spec.Silent = true
	if _, silent := linkConfigAt(spec, 20); !silent {
		t.Error("a change ended the administrator's silence")
	}
}

func TestWithoutT0NothingHasHappened(t *testing.T) {
	spec := changed(at(0, "", "", loss("50%")), silence(0, true))
	spec.T0 = nil
	if config, silent := linkConfigAt(spec, time.Hour); silent || config.Default.Loss != 0.01 {
		t.Errorf("got %+v, silent %v; want the network as it began", config, silent)
	}
}

func TestStepByStepComesToTheSameAsAtOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"", "*", "hq", "red", "blue"}
	for range 200 {
		var changes []v1alpha1.TimedRadioChange
		for range random.IntN(20) {
			changes = append(changes, at(time.Duration(random.IntN(10)), names[random.IntN(5)], names[random.IntN(5)], delay(v1alpha1.Duration(
				time.Duration(1e6*(1+random.IntN(9))).String()))))
		}
		spec := changed(changes...)
		before := spec.DeepCopy()
		r, err := newReplay(spec)
		if err != nil {
			t.Fatal(err)
		}
		for offset := range time.Duration(10) {
			held, _ := configOf(r)
			r.advance(int64(offset))
			got, _ := configOf(r)
			if want, _ := linkConfigAt(spec, offset); !reflect.DeepEqual(got, want) {
				t.Fatalf("at %d: step by step %+v, at once %+v", offset, got, want)
			}
			if earlier, _ := linkConfigAt(spec, offset-1); !reflect.DeepEqual(held, earlier) {
				t.Fatalf("a later change reached the snapshot %+v; want %+v", held, earlier)
			}
		}
		if !reflect.DeepEqual(spec, before) {
			t.Fatal("the spec was changed")
		}
	}
}

func TestOnlyChangesThatCameAfterTheirMomentAreOverdue(t *testing.T) {
	old := changed(at(10, "", "", loss("1%")))
	now := old.T0.UnixNano() + 20
	for name, c := range map[string]struct {
		before, spec *v1alpha1.RadioNetworkSpec
		want         int
	}{
		"known":              {old, old, 0},
		"to come":            {old, changed(old.Changes[0], at(21, "", "", loss("2%"))), 0},
		"past":               {old, changed(old.Changes[0], at(15, "", "", loss("2%"))), 1},
		"at a known moment":  {old, changed(old.Changes[0], at(10, "", "", loss("2%"))), 1},
		"T0 set too late":    {&v1alpha1.RadioNetworkSpec{Changes: old.Changes}, old, 1},
		"without T0, no one": {old, &v1alpha1.RadioNetworkSpec{Changes: old.Changes}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewlyOverdue(c.before, c.spec, now); len(got) != c.want {
				t.Errorf("overdue: %v; want %d", got, c.want)
			}
		})
	}
}
