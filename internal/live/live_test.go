package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// analysedRuns has runs on disk with the results that the analysis makes of them.
func analysedRuns(t *testing.T) []string {
	t.Helper()
	directory := t.TempDir()
	command := exec.CommandContext(t.Context(), "hack/python", "analysis/tests/live_runs.py", directory)
	command.Dir, command.Env = "../..", append(os.Environ(), "PYTHONPATH=analysis")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	runs, _ := filepath.Glob(directory + "/*/results.json")
	if len(runs) < 15 {
		t.Fatalf("%d runs; want 15 at least", len(runs))
	}
	return runs
}

func read(t *testing.T, path string, value any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replay gives a tally the logs of a run's folder, as agents ship them: a few lines of one, then of another, each in its order.
func replay(t *testing.T, directory string, plan runapi.Plan, random *rand.Rand, tally *Tally) {
	t.Helper()
	logs := map[string][][]byte{}
	files, _ := filepath.Glob(directory + "/logs/*/*/messages-*.jsonl")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(directory, file)
		logs[name] = bytes.Split(text, []byte{'\n'})
	}
	early := plan
	early.MeasureEndNanoseconds = nil
	tally.Plan(early)
	// Messages sent after the drain are shipped after the plan that says when it ended.
	var late []func()
	end := plan.T0.UnixNano() + *plan.MeasureEndNanoseconds
	names := files[:0]
	for name := range logs {
		names = append(names, name)
	}
	slices.Sort(names)
	for len(names) > 0 {
		i := random.IntN(len(names))
		name := names[i]
		n := min(1+random.IntN(20), len(logs[name]))
		for _, line := range logs[name][:n] {
			var r messagelog.Record
			switch {
			case json.Unmarshal(line, &r) != nil || r.Validate() != nil:
			case r.TimeNanoseconds > end && r.Status != messagelog.Received:
				late = append(late, func() { tally.Add(name, &r) })
			default:
				tally.Add(name, &r)
			}
		}
		if logs[name] = logs[name][n:]; len(logs[name]) == 0 {
			names = slices.Delete(names, i, i+1)
		}
	}
	tally.Plan(plan)
	for _, add := range late {
		add()
	}
}

func TestTheTallyIsThatOfTheAnalysisInWhateverOrderLogsCome(t *testing.T) {
	for _, file := range analysedRuns(t) {
		directory := filepath.Dir(file)
		t.Run(filepath.Base(directory), func(t *testing.T) {
			var results runapi.Results
			var plan runapi.Plan
			read(t, file, &results)
			read(t, directory+"/run.json", &plan)
			for seed := range uint64(2) {
				tally := New()
				replay(t, directory, plan, rand.New(rand.NewPCG(seed, 1)), tally) //nolint:gosec // a test's course
				checkGroups(t, tally.Figures(), results, seed)
			}
		})
	}
}

func checkGroups(t *testing.T, f Figures, results runapi.Results, seed uint64) {
	t.Helper()
	if m := results.Messages; f.Sent != m.Sent || f.Triggered != *m.Triggered {
		t.Errorf("order %d: %d messages triggered, %d sent; want %d and %d", seed, f.Triggered, f.Sent, *m.Triggered, m.Sent)
	}
	if f.Headline.Name != results.Headline {
		t.Errorf("order %d: the headline is of group %s; want %s", seed, f.Headline.Name, results.Headline)
	}
	have := map[string]Group{}
	for _, g := range f.Groups {
		have[g.Name] = g
	}
	// Delays that were counted before another instance sent the same id to the same topic stay.
	ambiguous := slices.ContainsFunc(results.Gaps, func(g runapi.Gap) bool { return g.What == "ambiguous messages" })
	for _, want := range results.Groups {
		got := have[want.Name]
		if m := want.Messages; got.Offered != *m.Offered || got.Expected != m.Expected || got.Received != m.Received {
			t.Errorf("order %d, group %s: %+v; want %d received of %d expected and %d offered", seed, want.Name, got.Counts, m.Received, m.Expected, *m.Offered)
		}
		if q := want.DelaySeconds; q != nil && q.Min > 0 && !ambiguous && got.DelaySeconds != nil {
			for i, value := range []float64{q.Min, q.P25, q.Median, q.P75} {
				if math.Abs(got.DelaySeconds[i]-value) > 0.01*value {
					t.Errorf("order %d, group %s: quantile %g is %g s; want %g within 1 %%", seed, want.Name, Quantiles[i], got.DelaySeconds[i], value)
				}
			}
		}
	}
}

func TestSendersAndReceiversAddUpToAllDeliveries(t *testing.T) {
	f := busyTally(1000).Figures()
	var from, to Counts
	for _, s := range f.Senders {
		from.add(s.Counts)
	}
	for _, r := range f.Receivers {
		to.add(r.Counts)
	}
	if all := f.Groups[0]; all.Name != "all" || from != all.Counts || to != all.Counts || all.Expected != 1000 {
		t.Errorf("group %s has %+v, senders %+v, receivers %+v; want the same of 1000 deliveries", all.Name, all.Counts, from, to)
	}
}

// twoNodes is a plan: a publisher on one node, a subscriber on another.
func twoNodes() runapi.Plan {
	t0 := time.Unix(1000, 0)
	return runapi.Plan{T0: &t0, Nodes: []runapi.PlannedNode{
		{Name: "a", Group: "a", Apps: []runapi.PlannedApp{{Name: "bft", Instances: []string{"a/bft"}}}},
		{Name: "b", Group: "b", Apps: []runapi.PlannedApp{{Name: "picture", Instances: []string{"b/picture"}}}},
	}, Streams: &runapi.Streams{Rows: []runapi.PlannedStream{{Publishers: []string{"a/bft"}, Topic: "/bft", Heard: []runapi.Heard{{}}}}, Audiences: [][]string{{"b/picture"}}}}
}

func busyTally(messages int) *Tally {
	tally := New()
	tally.maxMessages = 1000
	tally.Plan(twoNodes())
	for m := range messages {
		at := int64(1000+m) * 1e9
		id := fmt.Sprintf("m%d", m)
		tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: at, Instance: "a/bft", Status: messagelog.Sent, ID: id, Bytes: 100})
		tally.Add("logs/b/picture/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: at + 1e6, Instance: "b/picture", Status: messagelog.Received, ID: id, Topic: "/bft"})
	}
	return tally
}

func TestALongRunKeepsABoundedNumberOfMessagesInMemory(t *testing.T) {
	tally := busyTally(10_000)
	if kept := len(tally.current.messages) + len(tally.before.messages); kept > 2*tally.maxMessages {
		t.Errorf("%d messages are kept; want %d at most", kept, 2*tally.maxMessages)
	}
	if all := tally.Figures().Groups[0]; all.Received != 10_000 || all.Expected != 10_000 {
		t.Errorf("%+v; want all 10 000", all.Counts)
	}
}

func TestArrivalsOfUnsentMessagesWaitInBoundedMemory(t *testing.T) {
	tally := New()
	tally.maxWaiting = 100
	tally.Plan(twoNodes())
	for m := range 1000 {
		tally.Add("logs/b/picture/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1, Instance: "b/picture", Status: messagelog.Received, ID: fmt.Sprint(m)})
	}
	if kept := tally.current.waits + tally.before.waits; kept > 2*tally.maxWaiting {
		t.Errorf("%d events wait; want %d at most", kept, 2*tally.maxWaiting)
	}
}

func TestMessagesThatAreSentAfterTheDrainDoNotCount(t *testing.T) {
	tally, plan := New(), twoNodes()
	tally.Plan(plan)
	send := func(id string, at time.Duration) {
		tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: int64(1000*time.Second + at), Instance: "a/bft", Status: messagelog.Sent, ID: id})
	}
	send("in time", 59*time.Second)
	send("before the server knew the end", 61*time.Second)
	end := int64(60 * time.Second)
	plan.MeasureEndNanoseconds = &end
	tally.Plan(plan)
	send("later", 62*time.Second)
	if all := tally.Figures().Groups[0]; all.Offered != 1 || all.Expected != 1 {
		t.Errorf("%+v; want the delivery of one message", all.Counts)
	}
}

func TestNobodyExpectsAMessageWithoutATopic(t *testing.T) {
	tally, plan := New(), twoNodes()
	plan.Streams.Rows[0].Topic, plan.Streams.Rows[0].Filters = "", []string{"#"}
	tally.Plan(plan)
	tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1, Instance: "a/bft", Status: messagelog.Sent, ID: "x"})
	if f := tally.Figures(); f.Sent != 1 || f.Groups[0].Offered != 0 {
		t.Errorf("%d sent, %+v; want one that nobody expects", f.Sent, f.Groups[0].Counts)
	}
}

func TestRecordsThatNameAnotherAppsInstanceAreNotCounted(t *testing.T) {
	tally := New()
	tally.Plan(twoNodes())
	tally.Add("logs/b/picture/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1, Instance: "a/bft", Status: messagelog.Sent, ID: "x"})
	if f := tally.Figures(); f.Sent != 0 {
		t.Errorf("%d sent; want none: the log is another app's", f.Sent)
	}
}

func TestTheStreamsOfTheFirstMessagesPlanStay(t *testing.T) {
	tally := New()
	first := twoNodes()
	first.Streams.Rows[0].Topic, first.Streams.Rows[0].Filters = "", []string{"#"}
	tally.Plan(first)
	tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1, Instance: "a/bft", Status: messagelog.Sent, ID: "x", Topic: "/one"})
	later := twoNodes()
	later.Streams = nil
	tally.Plan(later)
	tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 2, Instance: "a/bft", Status: messagelog.Sent, ID: "y", Topic: "/two"})
	if all := tally.Figures().Groups[0]; all.Expected != 2 {
		t.Errorf("%d deliveries are expected; want 2, by the plan at the first message", all.Expected)
	}
}

func TestQuantilesAreWithinAQuarterPercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's course
	for _, count := range []int{1, 2, 3, 10, 1000, 20_000} {
		var s sketch
		values := make([]float64, count)
		for i := range values {
			values[i] = math.Exp(random.NormFloat64()*3 - 3)
			s.add(values[i])
		}
		slices.Sort(values)
		for _, q := range Quantiles {
			rank := q * float64(count-1)
			low := int(rank)
			want := values[low] + (rank-float64(low))*(values[min(low+1, count-1)]-values[low])
			if got := s.quantile(q); math.Abs(got-want) > 0.0026*want {
				t.Errorf("quantile %g of %d values: %g; want %g", q, count, got, want)
			}
		}
	}
}

func TestQuantilesAreThoseOfTheValuesThatWereNotRemoved(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5)) //nolint:gosec // a test's course
	for _, left := range []int{1, 2, 30, 500} {
		var s sketch
		values := make([]float64, 1000)
		for i := range values {
			values[i] = math.Exp(random.NormFloat64()*3 - 3)
			s.add(values[i])
		}
		for _, removed := range values[left:] {
			s.remove(removed)
		}
		least, most := slices.Min(values[:left]), slices.Max(values[:left])
		if got := s.quantile(0); math.Abs(got-least) > 0.0051*least {
			t.Errorf("the least of %d values: %g; want %g", left, got, least)
		}
		if got := s.quantile(1); math.Abs(got-most) > 0.0051*most {
			t.Errorf("the greatest of %d values: %g; want %g", left, got, most)
		}
	}
}

func BenchmarkAMessageAndItsDelivery(b *testing.B) {
	busyTally(b.N)
}

// lateTally has messages whose deliveries take 100 ms, and late times in an order of their own between them.
func lateTally(random *rand.Rand, messages int, late func(add func(from, to int64)) []func()) *Tally {
	tally := New()
	tally.Plan(twoNodes())
	steps := late(func(from, to int64) { tally.Late("", "", from, to) })
	for m := range messages {
		at, id := int64(1e12)+int64(m)*1e9, fmt.Sprintf("m%d", m)
		steps = append(steps, func() {
			tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: at, Instance: "a/bft", Status: messagelog.Sent, ID: id, Bytes: 100})
			tally.Add("logs/b/picture/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: at + 1e8, Instance: "b/picture", Status: messagelog.Received, ID: id, Topic: "/bft"})
		})
	}
	random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		step()
	}
	return tally
}

func TestDelaysAreLessByTheLateTimesThatTheyMetInWhateverOrderLogsCome(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a test's course
		tally := lateTally(random, 9, func(add func(from, to int64)) []func() {
			return []func(){
				func() { add(1e12+2e9+30e6, 1e12+2e9+50e6) },   // message 2 is under way
				func() { add(1e12+3e9-80e6, 1e12+3e9-20e6) },   // ended within message 3's delay before it was sent
				func() { add(1e12+4e9-300e6, 1e12+4e9-150e6) }, // long before message 4
				func() { add(1e12+5e9+70e6, 1e12+5e9+800e6) },  // message 5 arrives meanwhile
				func() { add(1e12+6e9+10e6, 1e12+6e9+20e6) },   // two that meet count once
				func() { add(1e12+6e9+15e6, 1e12+6e9+30e6) },   //
				func() { add(1e12+7e9-1e9/2, 1e12+7e9+1e9/2) }, // no delivery is less than none
				func() { add(1e12+8e9+200e6, 1e12+8e9+300e6) }, // after message 8 arrived
				func() { add(1e12+8e9+400e6, 1e12+8e9+400e6) }, // none at all
			}
		})
		var held []int64
		for i := range tally.recent {
			d := &tally.recent[i]
			held = append(held, (d.sent-1e12)/1e9*1000+d.late/1e6)
		}
		slices.Sort(held)
		if want := []int64{0, 1000, 2020, 3060, 4000, 5030, 6020, 7100, 8000}; !slices.Equal(held, want) {
			t.Fatalf("order %d: message and milliseconds %v; want %v", seed, held, want)
		}
		g := tally.Figures().Headline
		if g.DelaySeconds[2] != g.DelaySeconds[5] || g.LeastSeconds[5] > g.DelaySeconds[5] || math.Abs(g.LeastSeconds[1]-0.07) > 0.001 {
			t.Errorf("order %d: delays %v, at least %v; want a lower quartile of 70 ms at least", seed, g.DelaySeconds, g.LeastSeconds)
		}
	}
}

func TestALateSlotConcernsItsNodesDeliveriesUnlessNodesRelay(t *testing.T) {
	for name, c := range map[string]struct {
		node, network string
		want          float64
	}{
		"its sender":            {"a", "slots", 0.07},
		"another node":          {"c", "slots", 0.1},
		"any where nodes relay": {"c", "mesh", 0.07},
	} {
		tally := New()
		plan := twoNodes()
		plan.Spec.Networks = []v1alpha1.Network{{Name: "slots"}, {Name: "mesh", Routing: &v1alpha1.Routing{}}}
		tally.Plan(plan)
		tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1e12, Instance: "a/bft", Status: messagelog.Sent, ID: "m"})
		tally.Add("logs/b/picture/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1e12 + 1e8, Instance: "b/picture", Status: messagelog.Received, ID: "m", Topic: "/bft"})
		tally.Late(c.network, c.node, 1e12+10e6, 1e12+40e6)
		if got := tally.Figures().Headline.LeastSeconds[2]; math.Abs(got-c.want) > 0.001 {
			t.Errorf("%s: %g s at least; want %g", name, got, c.want)
		}
	}
}

func TestALateSlotConcernsWhatItsNodesBrokersMayHaveCarried(t *testing.T) {
	star := []string{"one", "hub", "hub", "one", "two", "hub", "hub", "two", "far", "hub", "hub", "far"}
	for name, c := range map[string]struct {
		node string
		// passages from one node's broker to another's, in pairs.
		passages []string
		want     bool
	}{
		"the hub on the way":               {"hub", star, true},
		"another one that joins it":        {"far", star, false},
		"the sender's":                     {"one", star, true},
		"each of a ring":                   {"far", []string{"one", "hub", "hub", "two", "one", "far", "far", "two"}, true},
		"none against its direction":       {"hub", []string{"one", "two", "one", "hub"}, false},
		"one to which its client may turn": {"spare", []string{"one", "two"}, true},
		"a mediator":                       {"between", []string{"one", "two"}, true},
		"none where nothing is joined":     {"hub", nil, false},
	} {
		plan := twoNodes()
		plan.Spec.Networks = []v1alpha1.Network{{Name: "slots"}}
		plan.Nodes[0].Apps[0].Brokers, plan.Nodes[1].Apps[0].Brokers = []string{"one/broker"}, []string{"two/broker"}
		if c.node == "spare" {
			plan.Nodes[1].Apps[0].Brokers = []string{"two/broker", "spare/broker"}
		}
		plan.Nodes = append(plan.Nodes, runapi.PlannedNode{Name: "between", Apps: []runapi.PlannedApp{{Name: "m", Kind: mediatorKind}}})
		for pair := range slices.Chunk(c.passages, 2) {
			plan.Passages = append(plan.Passages, runapi.PlannedPassage{From: pair[0] + "/broker", To: pair[1] + "/broker"})
		}
		for _, lateFirst := range []bool{false, true} {
			tally := New()
			tally.Plan(plan)
			late := func() { tally.Late("slots", c.node, 1e12+10e6, 1e12+40e6) }
			if lateFirst {
				late()
			}
			tally.Add("logs/a/bft/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1e12, Instance: "a/bft", Status: messagelog.Sent, ID: "m"})
			tally.Add("logs/b/picture/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1e12 + 1e8, Instance: "b/picture", Status: messagelog.Received, ID: "m", Topic: "/bft"})
			if !lateFirst {
				late()
			}
			if got := tally.Figures().Headline.LeastSeconds[2]; (got < 0.08) != c.want {
				t.Errorf("%s (late first: %t): %g s at least; want it concerned: %t", name, lateFirst, got, c.want)
			}
		}
	}
}

func TestANodeGroupMayBeNamedLikeAGroupOfFigures(t *testing.T) {
	tally, plan := New(), twoNodes()
	plan.Nodes[0].Group = "radio"
	tally.Plan(plan)
	var names []string
	for _, g := range tally.Figures().Groups {
		names = append(names, g.Name)
	}
	if want := []string{"all", "cross", "group/radio", "radio"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("groups %v; want %v", names, want)
	}
}

func TestLateTimesAreBounded(t *testing.T) {
	var times lateTimes
	for i := range int64(3 * maxLateTimes) {
		times.add(i*10, i*10+5)
	}
	if len(times) != maxLateTimes || times[0].from != 2*maxLateTimes*10 {
		t.Errorf("%d times from %d; want the %d newest", len(times), times[0].from, maxLateTimes)
	}
}
