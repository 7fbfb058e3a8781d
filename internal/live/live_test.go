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
			if json.Unmarshal(line, &r) == nil && r.Validate() == nil {
				tally.Add(name, &r)
			}
		}
		if logs[name] = logs[name][n:]; len(logs[name]) == 0 {
			names = slices.Delete(names, i, i+1)
		}
	}
	tally.Plan(plan)
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
		{Name: "a", Group: "a", Apps: []runapi.PlannedApp{{Name: "bft", Instances: []string{"a/bft"}, PublishTopics: []string{"/bft"}}}},
		{Name: "b", Group: "b", Apps: []runapi.PlannedApp{{Name: "picture", Instances: []string{"b/picture"}, Subscriptions: []string{"#"}}}},
	}}
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

func TestWhatNobodySentWaitsInBoundedMemory(t *testing.T) {
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

func TestRecordsThatNameAnotherAppsInstanceAreNotCounted(t *testing.T) {
	tally := New()
	tally.Plan(twoNodes())
	tally.Add("logs/b/picture/messages-1.jsonl", &messagelog.Record{TimeNanoseconds: 1, Instance: "a/bft", Status: messagelog.Sent, ID: "x"})
	if f := tally.Figures(); f.Sent != 0 {
		t.Errorf("%d sent; want none: the log is another app's", f.Sent)
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

func BenchmarkAMessageAndItsDelivery(b *testing.B) {
	busyTally(b.N)
}
