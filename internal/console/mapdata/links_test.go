package mapdata

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// recorded is the radio log of the run in testdata, from 100 s to 145 s after T0.
func recorded(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/radio.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func linksAt(t *testing.T, a *results, m *Maps, network string, at time.Duration) *Links {
	t.Helper()
	made, err := m.Links(t.Context(), a.source(), a.plan.UID, LinksQuery{Network: network, At: &at})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestLinksHaveTheNewestSINRAndTheShareThatWasDelivered(t *testing.T) {
	a := newResults(t, planned(t))
	a.log("n1", recorded(t))
	made := linksAt(t, a, New(), "net-a", 140*time.Second)
	if len(made.Links) != 20 {
		t.Fatalf("%d links; want those of five nodes", len(made.Links))
	}
	for _, link := range made.Links {
		sinr, delivered := lastOf(t, a.plan, "net-a", link.From, link.To, 140*time.Second)
		if link.SINR == nil || *link.SINR != sinr || link.Delivered == nil || *link.Delivered != delivered || link.Pathloss == nil {
			t.Errorf("%s to %s: %v, %v; want %v dB, %v", link.From, link.To, link.SINR, link.Delivered, sinr, delivered)
		}
	}
	if made.HopsFrom != "lead-a" || len(made.Hops) != 4 {
		t.Errorf("hops from %s: %v; want those of the other four nodes from the one with a broker", made.HopsFrom, made.Hops)
	}
}

// lastOf a link in the recorded log, computed in another way: the last line, and the counters at the ends of 30 s.
func lastOf(t *testing.T, plan runapi.Plan, network, from, to string, at time.Duration) (sinr, delivered float64) {
	t.Helper()
	end := plan.T0.Add(at).UnixNano()
	var first, last *runapi.RadioLink
	for line := range bytes.Lines(recorded(t)) {
		var l runapi.RadioLinks
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(l.From, func(r runapi.RadioLink) bool { return r.Node == from })
		if l.Network != network || l.Receiver != to || i < 0 || l.TimeNanoseconds > end || l.TimeNanoseconds < end-30e9 {
			continue
		}
		if last = &l.From[i]; first == nil {
			first = last
		}
	}
	heard, missed := float64(last.Received-first.Received), 0.0
	for reason, n := range last.Missed {
		missed += float64(n - first.Missed[reason])
	}
	return *last.SINRDecibels, round(heard/(heard+missed), 1e3)
}

func TestLinksOfARunThatGoesOnAreThoseOfTheNewestLine(t *testing.T) {
	a := newResults(t, planned(t))
	a.log("n1", recorded(t))
	made, err := New().Links(t.Context(), a.source(), a.plan.UID, LinksQuery{Network: "net-b"})
	if err != nil || made.AtSeconds < 144 || made.AtSeconds > 145 || len(made.Links) != 20 {
		t.Errorf("%v: %d links at %v s; want 20 at the end of the log", err, len(made.Links), made.AtSeconds)
	}
}

func TestLinksEndTenSecondsAfterTheLastReception(t *testing.T) {
	sample := func(at int64, heard, lost uint64) runapi.RadioLinks {
		return runapi.RadioLinks{TimeNanoseconds: at * 1e9, Network: "vhf", Receiver: "b", From: []runapi.RadioLink{{Node: "a", Received: heard, Missed: map[string]uint64{"lowSINR": lost}}}}
	}
	samples := []runapi.RadioLinks{sample(100, 5, 0), sample(102, 6, 3), sample(111, 6, 9)}
	for at, want := range map[int64]int{112: 1, 113: 0} {
		if got := linksOf(samples, "vhf", at*1e9); len(got) != want {
			t.Errorf("at %d s: %d links; want %d", at, len(got), want)
		}
	}
	if got := linksOf(samples, "vhf", 112e9); *got[0].Delivered != 0.1 {
		t.Errorf("delivered %v; want 1 of 10", *got[0].Delivered)
	}
	if got := linksOf(samples, "hf", 112e9); len(got) != 0 {
		t.Errorf("another network has %v", got)
	}
}

// wired is a plan of three nodes without positions on a network of the link model.
func wired(t *testing.T) runapi.Plan {
	t.Helper()
	plan := runapi.Plan{Namespace: "team-nor", Name: "wired", UID: "run-3", Phase: v1alpha1.PhaseRunning}
	t0 := time.Unix(1000, 0)
	plan.T0 = &t0
	text := `{"duration":"100s","networks":[{"name":"wan","subnet":"198.18.0.0/24","link":{"rate":"9.8kbit","loss":"10%"}}],
	"nodes":[{"name":"nor","networks":["wan"]},{"name":"usa","networks":["wan"]},{"name":"ger","networks":["wan"]}]}`
	if err := json.Unmarshal([]byte(text), &plan.Spec); err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestANetworkWithoutRadiosHasLinksWithTheShareThatTheirSendersLinksDidNotLose(t *testing.T) {
	a := newResults(t, wired(t))
	var log bytes.Buffer
	for second := range uint64(50) { // at first all arrives, in the last 20 s four frames of ten do not
		lost := 4*max(second, 29) - 4*29
		for _, sample := range []runapi.RadioSample{
			{Network: "wan", Node: "nor", FramesSent: 10 * second, Drops: map[string]uint64{"loss": lost / 2, "queueFull": lost / 2, "noReceiver": second}},
			{Network: "wan", Node: "usa", FramesSent: second, FramesReceived: 10 * second},
			{Network: "other", Node: "ger", FramesSent: second},
		} {
			sample.TimeNanoseconds = (1000 + int64(second)) * 1e9
			line, err := json.Marshal(sample)
			if err != nil {
				t.Fatal(err)
			}
			log.Write(append(line, '\n'))
		}
	}
	a.log("n1", log.Bytes())
	made := linksAt(t, a, New(), "wan", 49*time.Second)
	found := map[string]string{}
	for _, link := range made.Links {
		found[link.From+" "+link.To] = "not known"
		if link.Delivered != nil {
			found[link.From+" "+link.To] = fmt.Sprint(*link.Delivered)
		}
	}
	nor := fmt.Sprint(round(1-80./300, 1e3)) // from 19 s to 49 s
	want := map[string]string{"nor usa": nor, "nor ger": nor, "usa nor": "1", "usa ger": "1", "ger nor": "not known", "ger usa": "not known"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountersThatBeginAgainCountFromThere(t *testing.T) {
	sample := func(at int64, heard uint64) runapi.RadioLinks {
		return runapi.RadioLinks{TimeNanoseconds: at * 1e9, Network: "vhf", Receiver: "b", From: []runapi.RadioLink{{Node: "a", Received: heard}}}
	}
	got := linksOf([]runapi.RadioLinks{sample(100, 50), sample(101, 2), sample(102, 4)}, "vhf", 103e9)
	if len(got) != 1 || *got[0].Delivered != 1 {
		t.Errorf("%v; want one link with all delivered", got)
	}
}

func TestExpectedLinksAreThoseWhoseBudgetWouldDo(t *testing.T) {
	a := newResults(t, fixed(t))
	for second, want := range map[int]string{
		5:  "car→hq 58.07, car→veh 64.09, hq→car 58.07, hq→veh 64.09, veh→car 64.09, veh→hq 64.09", // 11 km and twice as far, in free space
		25: "hq→car 58.07, hq→veh 64.09",                                                           // the others are silent
		35: "hq→car 58.07, hq→veh 64.09, veh→car 64.09, veh→hq 64.09",
	} {
		at := time.Duration(second) * time.Second
		made, err := New().Links(t.Context(), a.source(), a.plan.UID, LinksQuery{Network: "vhf", At: &at, Expected: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, link := range made.Links {
			if !link.Expected || link.Delivered != nil {
				t.Errorf("%v; want an expected link", link)
			}
			got = append(got, fmt.Sprintf("%s→%s %.2f", link.From, link.To, *link.SINR))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("at %d s (-want +got):\n%s", second, diff)
		}
	}
}

func TestExpectedLinksOfAScheduleAreWhereSomebodyListens(t *testing.T) {
	const schedule = `<emane-tdma-schedule><structure frames="1" slots="2" slotoverhead="0" slotduration="5000" bandwidth="25000"/>
		<multiframe frequency="300M" power="37" class="0" datarate="9600"><frame index="0"><slot index="0" nodes="1"/>
		<slot index="1" nodes="2"><tx frequency="3G"/></slot><slot index="1" nodes="1"><rx frequency="3G"/></slot></frame></multiframe></emane-tdma-schedule>`
	plan := fixed(t)
	network := &plan.Spec.Networks[0]
	network.TDMA = &v1alpha1.TDMAModel{PHY: network.RFPipe.PHY, Schedule: schedule}
	network.RFPipe = nil
	a := newResults(t, plan)
	at := 5 * time.Second
	made, err := New().Links(t.Context(), a.source(), a.plan.UID, LinksQuery{Network: "vhf", At: &at, Expected: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, link := range made.Links {
		got = append(got, fmt.Sprintf("%s→%s %.2f", link.From, link.To, *link.SINR))
	}
	// car is not in the schedule. veh sends at ten times the frequency, and loses 20 dB more.
	if diff := cmp.Diff("hq→veh 64.09, veh→hq 44.09", strings.Join(got, ", ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASilentNetworkHasNoExpectedLinks(t *testing.T) {
	plan, yes, no := fixed(t), true, false
	for at, silent := range map[int64]*bool{50e9: &yes, 60e9: &no} {
		plan.LiveChanges = append(plan.LiveChanges, runapi.PlannedLiveChange{Name: fmt.Sprint("at-", at), AtNanoseconds: at, Changes: []v1alpha1.RadioChange{{Network: "vhf", Silent: silent}}})
	}
	a := newResults(t, plan)
	for second, want := range map[int]int{45: 4, 55: 0, 65: 4} {
		at := time.Duration(second) * time.Second
		made, err := New().Links(t.Context(), a.source(), plan.UID, LinksQuery{Network: "vhf", At: &at, Expected: true})
		if err != nil || len(made.Links) != want {
			t.Errorf("at %d s: %v, %v; want %d links", second, err, made, want)
		}
	}
}

func TestALinkThatWasHeardIsNotExpectedAsWell(t *testing.T) {
	heard := []Link{{From: "a", To: "b"}}
	got := withExpected(heard, []Link{{From: "a", To: "b", Expected: true}, {From: "a", To: "a2", Expected: true}})
	if diff := cmp.Diff([]Link{{From: "a", To: "a2", Expected: true}, {From: "a", To: "b"}}, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// routed is a plan of a chain of three nodes with OLSR.
func routed(t *testing.T) runapi.Plan {
	t.Helper()
	plan := wired(t)
	plan.Name, plan.UID, plan.Spec.Networks[0].Routing = "routed", "run-4", &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2}
	return plan
}

func hopsAt(t *testing.T, a *results, m *Maps, from string, at time.Duration) (hops map[string]int, byRoutes bool) {
	t.Helper()
	made, err := m.Links(t.Context(), a.source(), a.plan.UID, LinksQuery{Network: "wan", HopsFrom: from, At: &at})
	if err != nil {
		t.Fatal(err)
	}
	hops = map[string]int{}
	for _, hop := range made.Hops {
		hops[hop.To] = hop.Hops
	}
	return hops, made.HopsByRoutes
}

func TestHopsAreThoseOfTheRoutesThatTheRecordHas(t *testing.T) {
	a := newResults(t, routed(t))
	nor, usa, ger := "198.18.0.1/32", "198.18.0.2/32", "198.18.0.3/32"
	var log bytes.Buffer
	write := func(second int64, routes runapi.RadioRoutes) {
		routes.TimeNanoseconds = (1000 + second) * 1e9
		if routes.Routing == "" {
			routes.Routing = "olsrv2"
		}
		line, err := json.Marshal(routes)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(append(line, '\n'))
	}
	write(-5, runapi.RadioRoutes{Node: "nor", Complete: true, Routes: []runapi.RadioRoute{{To: usa, Hops: 1}, {To: "10.0.0.0/8", Hops: 4}}})
	write(10, runapi.RadioRoutes{Node: "nor", Routes: []runapi.RadioRoute{{To: ger, Hops: 2}}})
	write(12, runapi.RadioRoutes{Node: "nor", Topology: "voice", Routes: []runapi.RadioRoute{{To: ger, Hops: 9}}})
	write(14, runapi.RadioRoutes{Node: "nor", Routing: "olsrv1", Complete: true, Routes: []runapi.RadioRoute{{To: ger, Hops: 7}, {To: usa, Hops: 7}}})
	write(14, runapi.RadioRoutes{Node: "nor", Routing: "olsrv1", Gone: []string{ger, usa}}) // in another network
	write(15, runapi.RadioRoutes{Node: "ger", Complete: true, Routes: []runapi.RadioRoute{{To: nor, Hops: 2}}})
	write(20, runapi.RadioRoutes{Node: "nor", Gone: []string{usa}})
	write(30, runapi.RadioRoutes{Node: "nor", Complete: true, Routes: []runapi.RadioRoute{{To: ger, Hops: 1}}})
	a.log("n1", log.Bytes())
	m := New()
	for _, c := range []struct {
		from string
		at   time.Duration
		want map[string]int
	}{
		{"nor", 0, map[string]int{"usa": 1}},
		{"nor", 12 * time.Second, map[string]int{"usa": 1, "ger": 2}},
		{"nor", 14 * time.Second, map[string]int{"usa": 1, "ger": 2}},
		{"nor", 20 * time.Second, map[string]int{"ger": 2}},
		{"nor", 30 * time.Second, map[string]int{"ger": 1}},
		{"ger", 30 * time.Second, map[string]int{"nor": 2}},
	} {
		if hops, byRoutes := hopsAt(t, a, m, c.from, c.at); !byRoutes || !cmp.Equal(c.want, hops) {
			t.Errorf("%s at %s: %v, by routes %t; want %v", c.from, c.at, hops, byRoutes, c.want)
		}
	}
	if hops, byRoutes := hopsAt(t, a, m, "ger", 5*time.Second); byRoutes || len(hops) != 2 {
		t.Errorf("without a record of routes: %v, by routes %t; want the hops over links", hops, byRoutes)
	}
}

func TestRoutesOfALogThatGrowsAreReadOnce(t *testing.T) {
	var text bytes.Buffer
	for second := range int64(1000) {
		fmt.Fprintf(&text, `{"ts":%d,"node":"nor","routing":"olsrv2","routes":[{"to":"198.18.0.2/32","network":"wan","hops":%d,"metric":1}]}`+"\n", second*1e9, 1+second%3)
	}
	source, log := &memoryLog{}, &routeLog{}
	for end := 1; end <= text.Len(); end += 900 { // pieces end within lines
		source.text = text.Bytes()[:end]
		if err := log.readTo(t.Context(), source.reader, int64(end)); err != nil {
			t.Fatal(err)
		}
	}
	if source.read > int64(text.Len())*3/2+900*100 {
		t.Errorf("read %d bytes of %d", source.read, text.Len())
	}
	if hops, known := log.hopsOf(router{"nor", "olsrv2"}, 500e9); !known || hops["198.18.0.2/32"] != 1+500%3 {
		t.Errorf("%v, known %t; want %d hops", hops, known, 1+500%3)
	}
}

func TestHopsAreCountedOverDirectedLinks(t *testing.T) {
	links := []Link{{From: "a", To: "b"}, {From: "b", To: "c"}, {From: "a", To: "d"}, {From: "d", To: "c"}, {From: "e", To: "a"}}
	want := []Hop{{"a", "b", 1}, {"a", "d", 1}, {"a", "c", 2}}
	if diff := cmp.Diff(want, hopsFrom("a", links)); diff != "" {
		t.Errorf("hops (-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongWithAQueryIsSaid(t *testing.T) {
	a := newResults(t, planned(t))
	for want, query := range map[string]LinksQuery{
		`network "hf": run ` + a.plan.Name + ` has net-a, net-b, lead`: {Network: "hf"},
		`hopsFrom "b-1": network net-a has no such node`:               {Network: "net-a", HopsFrom: "b-1"},
	} {
		if _, err := New().Links(t.Context(), a.source(), a.plan.UID, query); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	plan := planned(t)
	plan.T0 = nil
	before := newResults(t, plan)
	if _, err := New().Links(t.Context(), before.source(), plan.UID, LinksQuery{Network: "net-a"}); err == nil || !strings.Contains(err.Error(), "has no T0 yet") {
		t.Errorf("%v; want that there is no T0", err)
	}
}

// memoryLog is a log in memory that counts what is read of it.
type memoryLog struct {
	text []byte
	read int64
}

func (m *memoryLog) reader(_ context.Context, offset, bytes int64) ([]byte, error) {
	if offset >= int64(len(m.text)) {
		return nil, nil
	}
	part := m.text[offset:min(offset+bytes, int64(len(m.text)))]
	m.read += int64(len(part))
	return slices.Clone(part), nil
}

// longLog has a line each half second for so many seconds, each third one with a link.
func longLog(seconds int) *memoryLog {
	var text bytes.Buffer
	for i := range 2 * seconds {
		ts := int64(i) * 5e8
		if i%3 == 0 {
			fmt.Fprintf(&text, `{"ts":%d,"network":"vhf","receiver":"b","from":[{"node":"a","heard":%d}]}`+"\n", ts, i)
		} else {
			fmt.Fprintf(&text, `{"ts":%d,"network":"vhf","node":"b","more":"%s"}`+"\n", ts, strings.Repeat("x", 400))
		}
	}
	return &memoryLog{text: text.Bytes()}
}

func TestAnyMomentOfALongLogIsFoundWithFewReads(t *testing.T) {
	source := longLog(50_000)
	log, random := &radioLog{}, rand.New(rand.NewPCG(1, 2))
	for range 200 {
		at := random.Int64N(50_000e9)
		source.read = 0
		found, last, err := log.until(t.Context(), source.reader, int64(len(source.text)), at)
		if err != nil || last != at {
			t.Fatalf("%v, until %d; want %d", err, last, at)
		}
		want := []int64{}
		for ts := int64(0); ts <= at; ts += 15e8 {
			if ts >= at-int64(shareWindow) {
				want = append(want, ts)
			}
		}
		got := []int64{}
		for i := range found.links {
			got = append(got, found.links[i].TimeNanoseconds)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("at %d (-want +got):\n%s", at, diff)
		}
		if source.read > 3<<20 {
			t.Fatalf("read %d bytes of %d", source.read, len(source.text))
		}
	}
}

func TestALogThatGrowsIsReadOnlyOnce(t *testing.T) {
	whole, source := longLog(20_000), &memoryLog{}
	log := &radioLog{}
	total := int64(0)
	for end := len(whole.text) / 2; end <= len(whole.text); end += 4000 { // pieces end within lines
		source.text, source.read = whole.text[:end], 0
		want, _ := timeOf(source.text[bytes.LastIndexByte(source.text[:bytes.LastIndexByte(source.text, '\n')], '\n')+1:])
		found, last, err := log.until(t.Context(), source.reader, int64(end), newest)
		if err != nil || last != want || len(found.links) < 20 || len(found.links) > 21 {
			t.Fatalf("%v: %d links in the 30 s before %d; want 20 or 21 before %d", err, len(found.links), last, want)
		}
		total += source.read
		if len(log.links) > 100 {
			t.Fatalf("%d links are kept", len(log.links))
		}
	}
	if rounds := int64(len(whole.text) / 2 / 4000); total > rounds*(lineBytes+9000)+2*firstReadBytes {
		t.Errorf("read %d bytes in %d rounds", total, rounds)
	}
}

func TestASmallLogHasItsEarlierMomentsAlsoAfterItsNewest(t *testing.T) {
	source, log := longLog(600), &radioLog{}
	for _, at := range []int64{newest, 60e9, newest, 300e9, 5e9} {
		found, last, err := log.until(t.Context(), source.reader, int64(len(source.text)), at)
		if want := int(min(last, int64(shareWindow))/15e8) + 1; err != nil || len(found.links) < want-1 || len(found.links) > want {
			t.Errorf("%v: %d links in the 30 s before %d; want about %d", err, len(found.links), last, want)
		}
	}
}

func FuzzTimeOf(f *testing.F) {
	f.Add([]byte(`{"ts":1795765079482041869,"network":"net-b"}`))
	f.Add([]byte(`{"ts":}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		at, ok := timeOf(line)
		if !ok && at != 0 {
			t.Errorf("%q has no time, but %d", line, at)
		}
	})
}

func TestAMeshOfManyNodesKeepsItsStrongestLinks(t *testing.T) {
	var samples []runapi.RadioLinks
	for to := range 200 {
		line := runapi.RadioLinks{TimeNanoseconds: 100e9, Network: "vhf", Receiver: fmt.Sprintf("n%03d", to)}
		for from := range 200 {
			sinr := float64(from + to)
			line.From = append(line.From, runapi.RadioLink{Node: fmt.Sprintf("n%03d", from), Received: 1, SINRDecibels: &sinr})
		}
		samples = append(samples, line)
	}
	all := linksOf(samples, "vhf", 101e9)
	kept := strongest(all)
	if len(all) != 40_000 || len(kept) != maxLinks {
		t.Fatalf("%d of %d links; want %d of 40000", len(kept), len(all), maxLinks)
	}
	weakest := slices.MinFunc(kept, func(a, b Link) int { return int(*a.SINR - *b.SINR) })
	if *weakest.SINR < 198 || !slices.IsSortedFunc(kept, byNodes) {
		t.Errorf("the weakest has %v dB, sorted %t; want the upper half in order", *weakest.SINR, slices.IsSortedFunc(kept, byNodes))
	}
}

// BenchmarkLinksOf300Nodes is one question of an open page: 30 s of a radio log with as many links as it may have.
func BenchmarkLinksOf300Nodes(b *testing.B) {
	var text bytes.Buffer
	for second := range 30 {
		for n := range runapi.MaxRadioLinks / 8 {
			line := runapi.RadioLinks{TimeNanoseconds: int64(second) * 1e9, Network: "vhf", Receiver: fmt.Sprintf("n%d", (second*7+n)%300)}
			for k := range 8 {
				sinr := 20.5
				line.From = append(line.From, runapi.RadioLink{Node: fmt.Sprintf("n%d", (n+k)%300), Received: uint64(second), SINRDecibels: &sinr, PathlossDecibels: &sinr})
			}
			encoded, err := json.Marshal(line)
			if err != nil {
				b.Fatal(err)
			}
			text.Write(append(encoded, '\n'))
		}
	}
	source := &memoryLog{text: text.Bytes()}
	for b.Loop() {
		found, at, err := new(radioLog).until(b.Context(), source.reader, int64(text.Len()), newest)
		if err != nil || len(linksOf(found.links, "vhf", at)) == 0 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(text.Len()), "log-bytes")
}
