package tdma

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// measured is the schedule that EMANE was measured with.
const measured = `<emane-tdma-schedule>
  <structure frames="1" slots="4" slotoverhead="0" slotduration="10000" bandwidth="1M"/>
  <multiframe frequency="2.4G" power="0" class="0" datarate="1M">
    <frame index="0">
      <slot index="0" nodes="1"/>
      <slot index="1" nodes="2"/>
      <slot index="2" nodes="3"/>
      <slot index="3" nodes="4"/>
    </frame>
  </multiframe>
</emane-tdma-schedule>`

const detailed = `<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment -->
<emane-tdma-schedule xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="tdmaschedule.xsd">
  <structure frames="4" slots="10" slotoverhead="250" slotduration="1500" bandwidth="2.5M"/>
  <multiframe frequency="2.4G" power="3.5" class="0" datarate="1M">
    <frame index="0:1" frequency="1.5M" class="2">
      <slot index="0" nodes="1,3:4"/>
      <slot index="1:2,4" nodes="2"><tx frequency="3K" power="-10" class="3" datarate="6.4K" destination="7"/></slot>
      <slot index="5" nodes="2"><rx frequency="700000000"/></slot>
      <slot index="6" nodes="2"><idle/></slot>
    </frame>
    <frame index="3">
      <slot index="9" nodes="1"><tx destination="65535"/></slot>
    </frame>
  </multiframe>
</emane-tdma-schedule>`

func TestSlotsAreWhatTheScheduleSays(t *testing.T) {
	s := parsed(t, detailed, nil)
	if want := (Structure{4, 10, 1500 * time.Microsecond, 250 * time.Microsecond, 2.5e6}); s.Structure() != want {
		t.Errorf("structure %+v; want %+v", s.Structure(), want)
	}
	if got := s.NEMs(); !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("it names %v; want 1 to 4", got)
	}
	for _, c := range []struct {
		about            string
		nem, frame, slot int
		want             Slot
	}{
		{"a listed slot is for sending, with what its frame and the multiframe say", 1, 0, 0, Slot{Kind: Transmit, FrequencyHertz: 1.5e6, RateBitsPerSecond: 1e6, PowerDBm: 3.5, Class: 2}},
		{"ranges of frames and nodes", 4, 1, 0, Slot{Kind: Transmit, FrequencyHertz: 1.5e6, RateBitsPerSecond: 1e6, PowerDBm: 3.5, Class: 2}},
		{"ranges of slots, with what they say themselves", 2, 1, 4, Slot{Kind: Transmit, FrequencyHertz: 3e3, RateBitsPerSecond: 6400, PowerDBm: -10, Class: 3, Destination: 7}},
		{"listening on a frequency", 2, 0, 5, Slot{Kind: Receive, FrequencyHertz: 7e8}},
		{"idle", 2, 0, 6, Slot{}},
		{"a slot that is not listed is for listening, on the frame's frequency", 2, 0, 7, Slot{Kind: Receive, FrequencyHertz: 1.5e6}},
		{"on the multiframe's where the frame has none", 1, 3, 0, Slot{Kind: Receive, FrequencyHertz: 2.4e9}},
		{"a frame that is not listed is idle", 1, 2, 0, Slot{}},
		{"a frame that does not name a node is idle for it", 2, 3, 0, Slot{}},
		{"broadcasts alone", 1, 3, 9, Slot{Kind: Transmit, FrequencyHertz: 2.4e9, RateBitsPerSecond: 1e6, PowerDBm: 3.5, Destination: BroadcastNEM}},
		{"a node that is not named is idle", 5, 0, 0, Slot{}},
	} {
		if got := s.Slot(c.nem, c.frame, c.slot); got != c.want {
			t.Errorf("%s: %+v; want %+v", c.about, got, c.want)
		}
	}
}

func TestAnUpdateReplacesWhatItLists(t *testing.T) {
	base := parsed(t, measured, nil)
	update := parsed(t, `<emane-tdma-schedule><multiframe frequency="3G" power="1" class="1" datarate="2M"><frame index="0">
		<slot index="1" nodes="1"/><slot index="1" nodes="2"><idle/></slot></frame></multiframe></emane-tdma-schedule>`, base)
	if got, want := update.Slot(1, 0, 1), (Slot{Kind: Transmit, FrequencyHertz: 3e9, RateBitsPerSecond: 2e6, PowerDBm: 1, Class: 1}); got != want {
		t.Errorf("slot 1 of node 1 is %+v; want %+v", got, want)
	}
	if got := update.Slot(2, 0, 1); got != (Slot{}) {
		t.Errorf("slot 1 of node 2 is %+v; want idle", got)
	}
	for nem := 1; nem <= 4; nem++ {
		for slot := range 4 {
			if slot != 1 || nem > 2 {
				if got, want := update.Slot(nem, 0, slot), base.Slot(nem, 0, slot); got != want {
					t.Errorf("slot %d of node %d became %+v; want %+v as before", slot, nem, got, want)
				}
			}
		}
	}
	if got := base.Slot(2, 0, 1).Kind; got != Transmit {
		t.Errorf("the schedule that was updated changed: slot 1 of node 2 is of kind %d", got)
	}
}

func TestAnUpdateOfAGeneratedScheduleIsNotGenerated(t *testing.T) {
	base := schedule(t, 4, milliseconds(4, 5*time.Millisecond), 1e6)
	update := parsed(t, `<emane-tdma-schedule><multiframe><frame index="0"><slot index="1" nodes="1"><idle/></slot></frame></multiframe></emane-tdma-schedule>`, base)
	if update.Generated() || !base.Generated() {
		t.Errorf("generated: %v after the update, %v before; want before only, as generating again undoes the update", update.Generated(), base.Generated())
	}
}

func TestErrorsNameTheElementAndItsValue(t *testing.T) {
	replace := func(old, replacement string) string { return strings.Replace(measured, old, replacement, 1) }
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"no <emane-tdma-schedule>"}},
		{"not XML", "<emane-tdma-schedule>", []string{"TDMA schedule: line 1: the text ends too early"}},
		{"another version of XML", `<?xml version="1.1"?><emane-tdma-schedule/>`, []string{"line 1", `want version="1.0"`}},
		{"another root", "<schedule/>", []string{"line 1", "<schedule>", "want <emane-tdma-schedule>"}},
		{"no multiframe", "<emane-tdma-schedule/>", []string{"no <multiframe>"}},
		{"an update of nothing", replace(`<structure frames="1" slots="4" slotoverhead="0" slotduration="10000" bandwidth="1M"/>`, ""), []string{"line 3", "<multiframe> without <structure>"}},
		{"no frames", replace(`frames="1" `, ""), []string{"line 2", "<structure> without frames"}},
		{"no bandwidth", replace(` bandwidth="1M"`, ""), []string{"<structure> without bandwidth"}},
		{"frames", replace(`frames="1"`, `frames="0"`), []string{"line 2", "<structure>", "frames 0"}},
		{"slots", replace(`slots="4"`, `slots="-4"`), []string{`<structure slots="-4">`, "0 to 65535"}},
		{"duration", replace(`"10000"`, `"10ms"`), []string{`<structure slotduration="10ms">`}},
		{"overhead", replace(`slotoverhead="0"`, `slotoverhead="10000"`), []string{"slotoverhead 10ms", "less than slotduration 10ms"}},
		{"bandwidth", replace(`"1M"`, `"1m"`), []string{`<structure bandwidth="1m">`, "2.4G"}},
		{"unknown attribute", replace(`<frame index`, `<frame name="a" index`), []string{"line 4", "<frame> has attribute name", "index, frequency"}},
		{"unknown element", replace(`<slot index="0" nodes="1"/>`, `<slut/>`), []string{"line 5", "<slut> in <frame>", "want <slot>"}},
		{"unknown kind", replace(`nodes="1"/>`, `nodes="1"><send/></slot>`), []string{"line 5", "<send> in <slot>"}},
		{"two kinds", replace(`nodes="1"/>`, `nodes="1"><rx/><tx/></slot>`), []string{"<tx> in <slot>: want one of"}},
		{"text", replace(`nodes="1"/>`, `nodes="1">tx</slot>`), []string{`<slot> contains text "tx"`}},
		{"frame out of range", replace(`<frame index="0"`, `<frame index="1"`), []string{"line 4", `<frame index="1">`, "0 to 0"}},
		{"slot out of range", replace(`index="3"`, `index="2:4"`), []string{"line 8", `<slot index="2:4">`, "0 to 3"}},
		{"node 0", replace(`nodes="1"`, `nodes="0"`), []string{`<slot nodes="0">`, "1 to 65534"}},
		{"everybody", replace(`nodes="1"`, `nodes="65535"`), []string{`<slot nodes="65535">`}},
		{"range backwards", replace(`nodes="1"`, `nodes="3:1"`), []string{`<slot nodes="3:1">`}},
		{"no nodes", replace(` nodes="1"`, ``), []string{"line 5", "<slot> without nodes"}},
		{"defined twice", replace(`index="3" nodes="4"`, `index="0" nodes="1:4"`), []string{"line 8", "<slot index> has 0", "twice for node 1 in frame 0"}},
		{"no frequency", replace(` frequency="2.4G"`, ""), []string{"line 5", "frame 0 has no frequency"}},
		{"no rate", replace(` datarate="1M"`, ""), []string{"line 5", "<slot> in frame 0 has no datarate"}},
		{"no power", replace(` power="0"`, ""), []string{"no power"}},
		{"no class", replace(` class="0"`, ""), []string{"no class"}},
		{"class", replace(`class="0"`, `class="5"`), []string{`<multiframe class="5">`, "0 to 4"}},
		{"class of a slot", replace(`nodes="1"/>`, `nodes="1"><tx class="4"/></slot>`), []string{`<tx class="4">`, "0 to 3"}},
		{"power", replace(`power="0"`, `power="1e1"`), []string{`<multiframe power="1e1">`, "dBm"}},
		{"rate", replace(`datarate="1M"`, `datarate="1.5"`), []string{`<multiframe datarate="1.5">`}},
		{"a rate at which no byte fits", replace(`datarate="1M"`, `datarate="1"`), []string{"line 5", "datarate 1 bit/s", "no byte"}},
		{"destination", replace(`nodes="1"/>`, `nodes="1"><tx destination="broadcast"/></slot>`), []string{`<tx destination="broadcast">`, "1 to 65535"}},
		{"no frequency to listen on", strings.NewReplacer(` frequency="2.4G"`, "", `nodes="1"/>`, `nodes="1"><idle/></slot>`, `nodes="2"/>`, `nodes="1"><idle/></slot>`,
			`nodes="3"/>`, `nodes="1"><idle/></slot>`, `<slot index="3" nodes="4"/>`, ``).Replace(measured), []string{"frame 0 leaves slot 3 of node 1 out", "frequency"}},
		{"too large", strings.Replace(replace(`frames="1" slots="4"`, `frames="65535" slots="65535"`), `nodes="1"`, `nodes="1:400"`, 1), []string{"more than 4194304 slots"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseSchedule([]byte(c.text), nil)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v; want it to have %q", err, want)
				}
			}
		})
	}
	_, err := ParseSchedule([]byte(`<emane-tdma-schedule><multiframe><frame index="0"><slot index="0" nodes="9"><idle/></slot></frame></multiframe></emane-tdma-schedule>`), parsed(t, measured, nil))
	if err == nil || !strings.Contains(err.Error(), "<slot nodes> has 9") {
		t.Errorf("an update of a node that has no schedule: %v", err)
	}
}

func TestGeneratedSlotsGoRoundRobinAndOthersListenExplicitly(t *testing.T) {
	s, err := Generate(Structure{3, 4, 5 * time.Millisecond, 0, 1e6}, []int{9, 2, 5}, 1e6, 3e8, func(nem int) float64 { return float64(nem) })
	if err != nil {
		t.Fatal(err)
	}
	turns := []int{2, 5, 9}
	for turn := range 12 {
		for _, nem := range turns {
			want := Slot{Kind: Receive, FrequencyHertz: 3e8}
			if nem == turns[turn%3] {
				want = Slot{Kind: Transmit, FrequencyHertz: 3e8, RateBitsPerSecond: 1e6, OwnPower: true, PowerDBm: float64(nem)}
			}
			if got := s.Slot(nem, turn/4, turn%4); got != want {
				t.Errorf("slot %d of frame %d of node %d is %+v; want %+v", turn%4, turn/4, nem, got, want)
			}
		}
	}
	if text := string(s.XML()); strings.Count(text, "<rx/>") != 12 || !s.Generated() {
		t.Errorf("the nodes that listen are not said for each slot:\n%s", text)
	}
	few, err := Generate(Structure{1, 2, 5 * time.Millisecond, 0, 1e6}, []int{1, 2, 3}, 1e6, 3e8, nil)
	if err != nil || !slices.Equal(few.WithoutSendSlots([]int{1, 2, 3, 4}), []int{3, 4}) {
		t.Errorf("without a slot to send in are %v (%v); want 3 and 4", few.WithoutSendSlots([]int{1, 2, 3, 4}), err)
	}
}

func TestWhatCannotBeGenerated(t *testing.T) {
	good := milliseconds(4, 5*time.Millisecond)
	many := make([]int, 100)
	for i := range many {
		many[i] = i + 1
	}
	for _, c := range []struct {
		name            string
		structure       Structure
		nems            []int
		rate, frequency uint64
		want            string
	}{
		{"structure", Structure{}, []int{1}, 1, 1, "frames 0"},
		{"rate", good, []int{1}, 0, 1, "rate 0"},
		{"frequency", good, []int{1}, 1e6, 0, "frequency 0"},
		{"NEM", good, []int{1, 70000}, 1e6, 1, "NEM id 70000"},
		{"no byte", good, []int{1}, 1, 1, "no byte"},
		{"large", Structure{65535, 65535, time.Second, 0, 1}, many, 1e6, 1, "slots 65535"},
	} {
		if _, err := Generate(c.structure, c.nems, c.rate, c.frequency, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want it to have %q", c.name, err, c.want)
		}
	}
}

func TestRatesNeedOrderAndRoom(t *testing.T) {
	good := []Rate{{380e3, 3}, {1e6, 12}, {500e3, 6}}
	if err := CheckRates(good, milliseconds(4, 5*time.Millisecond)); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		rates []Rate
		want  string
	}{
		{[]Rate{{0, 1}}, "adaptive rate 0"},
		{[]Rate{{1000, 1}}, "no byte"},
		{[]Rate{{380e3, 6}, {1e6, 6}}, "higher threshold"},
		{[]Rate{{380e3, 6}, {1e6, 3}}, "higher threshold"},
		{[]Rate{{1e6, 6}, {1e6, 6}}, "higher threshold"},
		{[]Rate{{1e6, 6}, {1e6, 9}}, "higher threshold"},
	} {
		if err := CheckRates(c.rates, milliseconds(4, 5*time.Millisecond)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v; want it to have %q", c.rates, err, c.want)
		}
	}
}

// sameSlots compares schedules by what they say.
func sameSlots(a, b *Schedule) error {
	if a.structure != b.structure || !slices.Equal(a.NEMs(), b.NEMs()) {
		return fmt.Errorf("structure %+v for %v, and %+v for %v", a.structure, a.NEMs(), b.structure, b.NEMs())
	}
	for _, nem := range a.NEMs() {
		for frame := range a.structure.Frames {
			for slot := range a.structure.Slots {
				was, is := a.Slot(nem, frame, slot), b.Slot(nem, frame, slot)
				was.OwnPower, is.OwnPower = false, false
				if !reflect.DeepEqual(was, is) {
					return fmt.Errorf("slot %d of frame %d of node %d: %+v and %+v", slot, frame, nem, was, is)
				}
			}
		}
	}
	return nil
}

func TestSchedulesSurviveBeingWrittenAndRead(t *testing.T) {
	all := []*Schedule{parsed(t, measured, nil), parsed(t, detailed, nil), schedule(t, 24, Structure{8, 24, 5 * time.Millisecond, 3 * time.Microsecond, 250e3}, 1e6)}
	for seed := range uint64(100) {
		all = append(all, randomSchedule(t, rand.New(rand.NewPCG(seed, 3))))
	}
	for i, s := range all {
		text := s.XML()
		again, err := ParseSchedule(text, nil)
		if err == nil {
			err = sameSlots(s, again)
		}
		if err != nil {
			t.Fatalf("schedule %d: %v\n%s", i, err, text)
		}
	}
}

func randomSchedule(t *testing.T, random *rand.Rand) *Schedule {
	var b strings.Builder
	frames, slots := 1+random.IntN(4), 1+random.IntN(6)
	fmt.Fprintf(&b, `<emane-tdma-schedule><structure frames="%d" slots="%d" slotoverhead="%d" slotduration="%d" bandwidth="%dK"/>`,
		frames, slots, random.IntN(500), 1000+random.IntN(10000), 1+random.IntN(100))
	fmt.Fprintf(&b, `<multiframe frequency="%dM" power="%d.5" class="%d" datarate="%dK">`, 1+random.IntN(3), random.IntN(20)-10, random.IntN(5), 64+random.IntN(3))
	for frame := range frames {
		fmt.Fprintf(&b, `<frame index="%d">`, frame)
		for slot := range slots {
			for nem := 1; nem <= 4; nem++ {
				kind := []string{"<tx/>", "<rx/>", "<idle/>", `<tx power="-3.25" class="1" destination="2"/>`, `<rx frequency="5K"/>`, `<tx frequency="1.5G" datarate="2M"/>`}[random.IntN(6)]
				if random.IntN(3) > 0 || slot+nem == 1 {
					fmt.Fprintf(&b, `<slot index="%d" nodes="%d">%s</slot>`, slot, nem, kind)
				}
			}
		}
		fmt.Fprintf(&b, `<slot index="0" nodes="5"/></frame>`)
	}
	b.WriteString(`</multiframe></emane-tdma-schedule>`)
	return parsed(t, b.String(), nil)
}

func TestAScheduleMayDeclareTheEncodingOfItsFile(t *testing.T) {
	text := strings.Replace(detailed, `encoding="UTF-8"`, `encoding="US-ASCII"`, 1)
	if err := sameSlots(parsed(t, text, nil), parsed(t, detailed, nil)); err != nil {
		t.Error(err)
	}
}

func FuzzParseSchedule(f *testing.F) {
	f.Add([]byte(measured))
	f.Add([]byte(detailed))
	f.Add([]byte(`<emane-tdma-schedule><multiframe frequency="3G"><frame index="0"><slot index="1" nodes="1"><rx/></slot></frame></multiframe></emane-tdma-schedule>`))
	base, err := ParseSchedule([]byte(measured), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSchedule(text, base)
		if err != nil {
			return
		}
		if st := s.structure; len(s.plans)*st.Frames*st.Slots > 1<<16 || len(s.plans) == 0 {
			return
		}
		again, err := ParseSchedule(s.XML(), nil)
		if err == nil {
			err = sameSlots(s, again)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, s.XML())
		}
	})
}
