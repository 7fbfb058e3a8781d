package emane

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// faded is a scenario: what 2 receives from 1 fades from the start, and otherwise after a second.
func faded(t *testing.T) *scenario.Scenario {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	for nem := range 3 {
		if err := b.Position(0, nem+1, geo.Position{Latitude: 58, Longitude: 8 + float64(nem)/100, Altitude: 50}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{b.Pathloss(0, 1, 2, 70), b.FadingSelection(0, 1, 2, scenario.FadingNakagami), b.FadingSelection(time.Second, 1, 2, scenario.FadingLognormal)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return scenariotest.Open(t, b)
}

func fading() *v1alpha1.RadioNetworkSpec {
	spec := slotted()
	spec.FadingSelections = true
	return spec
}

func constantFading(model string) *v1alpha1.RadioNetworkSpec {
	spec := slotted()
	spec.Waveform.EMANE = &v1alpha1.EMANESettings{Parameters: []v1alpha1.EMANEParameter{{Layer: "phy", Name: "fading.model", Values: []string{model}},
		{Layer: "phy", Name: "fading.nakagami.m0", Values: []string{"0.6"}}}}
	return spec
}

// selection is the fading of what a NEM receives from another.
type selection struct {
	to    int
	from  uint32
	model string
}

func selectionsIn(t *testing.T, events []Event) (all []selection) {
	t.Helper()
	for _, e := range events {
		if e.ID != FadingSelectionEvent {
			continue
		}
		read := &emanepb.FadingSelections{}
		if err := proto.Unmarshal(e.Data, read); err != nil {
			t.Fatal(err)
		}
		for _, s := range read.GetSelections() {
			all = append(all, selection{e.NEM, s.GetFrom(), s.GetModel().String()})
		}
	}
	return all
}

func TestTheFeedSelectsFadingForEachReceiverAndSender(t *testing.T) {
	spec := fading()
	spec.Members = spec.Members[:2]
	feed, err := NewFeed(spec, faded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		at   time.Duration
		want []selection
	}{
		{0, []selection{{1, 2, "NONE"}, {2, 1, "NAKAGAMI"}}}, // EMANE drops what it has no selection for
		{time.Millisecond, nil},
		{time.Second, []selection{{2, 1, "LOGNORMAL"}}},
	} {
		events, _, _, err := feed.Changes(step.at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, selectionsIn(t, events), cmp.AllowUnexported(selection{})); diff != "" {
			t.Errorf("at %s: %s", step.at, diff)
		}
	}
	if diff := cmp.Diff([]selection{{1, 2, "NONE"}, {2, 1, "LOGNORMAL"}}, selectionsIn(t, feed.All()), cmp.AllowUnexported(selection{})); diff != "" {
		t.Error("for late ones:", diff)
	}
}

func TestAFadingSelectionEventHasTheBytesOfItsDefinition(t *testing.T) {
	spec := fading()
	spec.Members = spec.Members[:2]
	feed, err := NewFeed(spec, faded(t))
	if err != nil {
		t.Fatal(err)
	}
	events, _, _, err := feed.Changes(0)
	if err != nil {
		t.Fatal(err)
	}
	events = slices.DeleteFunc(events, func(e Event) bool { return e.ID != 106 || e.NEM != 2 })
	// NEM 1: 1, nakagami 2: 2
	if want := []byte{0x0a, 0x04, 0x08, 0x01, 0x10, 0x02}; len(events) != 1 || !bytes.Equal(events[0].Data, want) {
		t.Errorf("%+v; want one event with % x", events, want)
	}
}

func TestEMANEFadesByEventsUnlessAParameterSaysOtherwise(t *testing.T) {
	both := constantFading("nakagami")
	both.FadingSelections = true
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		want []string
	}{
		"nothing":        {slotted(), nil},
		"the scenario's": {fading(), []string{`<param name="fading.model" value="event"/>`}},
		"a parameter's":  {constantFading("nakagami"), []string{`<param name="fading.model" value="nakagami"/>`, `<param name="fading.nakagami.m0" value="0.6"/>`}},
		"both":           {both, []string{`<param name="fading.model" value="nakagami"/>`, `<param name="fading.nakagami.m0" value="0.6"/>`}},
	} {
		files, err := Render(c.spec, &c.spec.Members[0], process())
		if err != nil {
			t.Fatal(err)
		}
		phy := string(files[slices.IndexFunc(files, func(f File) bool { return f.Name == "phy.xml" })].Text)
		for _, want := range c.want {
			if !strings.Contains(phy, want) {
				t.Errorf("%s: %s\nwant %s", name, phy, want)
			}
		}
		if count := strings.Count(phy, "fading."); count != len(c.want) {
			t.Errorf("%s: %s\nwant %d parameters of fading", name, phy, len(c.want))
		}
	}
}

func TestSelectionsArePublishedOnlyForFadingByEvents(t *testing.T) {
	byParameter, node := constantFading("event"), slotted()
	node.Waveform.EMANE = &v1alpha1.EMANESettings{Nodes: []v1alpha1.EMANENodes{{Names: []string{"veh-2"}, Parameters: byParameter.Waveform.EMANE.Parameters}}}
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		want bool
	}{"nothing": {slotted(), false}, "a model": {constantFading("lognormal"), false}, "the scenario's": {fading(), true}, "a parameter": {byParameter, true}, "a node's": {node, true}} {
		feed, err := NewFeed(c.spec, faded(t))
		if err != nil {
			t.Fatal(err)
		}
		events, _, _, err := feed.Changes(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(selectionsIn(t, events)) > 0; got != c.want {
			t.Errorf("%s: published %t, want %t", name, got, c.want)
		}
	}
}

func TestFadingDelaysBurstsByTheirPropagation(t *testing.T) {
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		want bool
	}{"none": {slotted(), false}, "no model": {constantFading("none"), false}, "a model": {constantFading("nakagami"), true}, "the scenario's": {fading(), true}} {
		if _, limited := SlotReach(c.spec, false); limited != c.want {
			t.Errorf("%s: the reach is limited: %t, want %t", name, limited, c.want)
		}
	}
}
