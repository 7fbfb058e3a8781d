package live

import (
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

const wholeSchedule = `<emane-tdma-schedule><structure frames='1' slots='2' slotoverhead='0' slotduration='10000' bandwidth='1000000'/>` +
	`<multiframe frequency='300000000' power='0' class='0' datarate='1000000'><frame index='0'><slot index='0' nodes='1'/><slot index='1' nodes='2'/></frame></multiframe></emane-tdma-schedule>`

// slotted is a network whose schedule is generated, with changes in order of time.
func slotted(changes ...v1alpha1.TimedRadioChange) *v1alpha1.RadioNetworkSpec {
	return &v1alpha1.RadioNetworkSpec{
		Network: "hf", Members: []v1alpha1.Member{{Node: "hq", NEM: 1}, {Node: "veh", NEM: 2}}, Changes: changes,
		Waveform: v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit", Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms"}}},
	}
}

// guarded is slotted on EMANE, which computes pathlosses from positions, with 100 us of overhead: 29.7 km.
func guarded(engine v1alpha1.Engine) *v1alpha1.RadioNetworkSpec {
	n := slotted()
	n.Engine, n.Waveform.TDMA.Structure.SlotOverhead, n.Waveform.TDMA.PHY.Pathloss = engine, "100us", v1alpha1.PathlossFreeSpace
	return n
}

func TestAChangeIsCheckedWithOthersInOrderOfTime(t *testing.T) {
	slower := v1alpha1.DataRate("64kbit")
	rate, schedule := v1alpha1.RadioChange{Network: "hf", Radio: &v1alpha1.RadioPatch{Rate: &slower}}, v1alpha1.RadioChange{Network: "hf", Schedule: wholeSchedule}
	at := func(after time.Duration, change v1alpha1.RadioChange) v1alpha1.TimedRadioChange {
		return v1alpha1.TimedRadioChange{AtNanoseconds: int64(after), RadioChange: change}
	}
	guard := func(microseconds string) []v1alpha1.RadioChange {
		return []v1alpha1.RadioChange{{Network: "hf", Schedule: strings.Replace(wholeSchedule, "slotoverhead='0'", "slotoverhead='"+microseconds+"'", 1)}}
	}
	const now = 5 * time.Minute
	for name, c := range map[string]struct {
		network *v1alpha1.RadioNetworkSpec
		changes []v1alpha1.RadioChange
		want    string // empty if it fits
	}{
		"a schedule alone":                           {slotted(), []v1alpha1.RadioChange{schedule}, ""},
		"a schedule that a later rate cannot change": {slotted(at(2*now, rate)), []v1alpha1.RadioChange{schedule}, "changes[10m0s].radio.rate: "},
		"a schedule after that rate":                 {slotted(at(time.Minute, rate)), []v1alpha1.RadioChange{schedule}, ""},
		"a rate before a schedule":                   {slotted(at(2*now, schedule)), []v1alpha1.RadioChange{rate}, ""},
		"a rate after a schedule":                    {slotted(at(time.Minute, schedule)), []v1alpha1.RadioChange{rate}, "spec.changes[0].radio.rate: "},
		"a schedule and a rate at once":              {slotted(), []v1alpha1.RadioChange{schedule, rate}, "spec.changes[1].radio.rate: "},
		"beside a change that did not fit before":    {slotted(at(time.Minute, schedule), at(2*now, rate)), []v1alpha1.RadioChange{schedule}, ""},
		"EMANE's slots with as long a guard":         {guarded(v1alpha1.EngineEMANE), guard("100"), ""},
		"EMANE's slots with a shorter guard":         {guarded(v1alpha1.EngineEMANE), guard("50"), "want a slotoverhead of at least 100 microseconds"},
		"our own slots with a shorter guard":         {guarded(v1alpha1.EngineNative), guard("50"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			change := &v1alpha1.LiveChange{Spec: v1alpha1.LiveChangeSpec{Changes: c.changes}}
			errs := misfits(change, now, func(string) *v1alpha1.RadioNetworkSpec { return c.network })
			if c.want == "" && len(errs) > 0 || c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)) {
				t.Errorf("found %v, want %q", errs, c.want)
			}
		})
	}
}
