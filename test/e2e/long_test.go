//go:build e2e && long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// TestLongFormsOfE4 runs twelve of setting 2, all that start at once and need no image from elsewhere, at full length side by side. Nothing may be late, as what
// overload does looks like what a radio does, unless the whole machine stood still meanwhile.
func TestLongFormsOfE4(t *testing.T) {
	longForms(t, "e4/setting2-m*.yaml", 12, 30*time.Minute)
}

func TestLongFormsOfE4WithTwoNations(t *testing.T) {
	longForms(t, "e4/setting1-m*.yaml", 6, 30*time.Minute)
}

func TestLongFormsOfE3(t *testing.T) {
	for _, run := range longForms(t, "e3/[bs]*.yaml", 2, 30*time.Minute) {
		checkE3(t, resultsOf(t, get(t, run.Experiment).UID))
	}
}

func TestLongFormsOfE1(t *testing.T) {
	longForms(t, "e1/*.yaml", 2, 50*time.Minute)
}

func TestLongFormsOfE2(t *testing.T) {
	longForms(t, "e2/mosquitto-*.yaml", 3, 50*time.Minute)
}

// TestLongFormsOfE2WithOtherMessaging leaves out those that need VerneMQ's image.
func TestLongFormsOfE2WithOtherMessaging(t *testing.T) {
	for pattern, count := range map[string]int{"e2/wsn-*.yaml": 2, "e2/mqttsn-mosquitto-*.yaml": 3, "e2/rabbitmq-*.yaml": 3} {
		t.Run(pattern, func(t *testing.T) { longForms(t, pattern, count, 50*time.Minute) })
	}
}

// TestShortFormsOfTheStudies runs those that continuous integration leaves out and that need no image from elsewhere, a few at a time.
func TestShortFormsOfTheStudies(t *testing.T) {
	for _, pattern := range []string{
		"e1/short/*", "e2/short/wsn*", "e2/short/rabbitmq*", "e2/short/mqttsn-mosquitto*", "e4/short/*rabbitmq*",
		"e8/short/mqtt-*gps*", "e8/short/mqtt-*image*", "e8/short/mqttsn-*", "e8/short/zeromq-*gps*", "e8/short/zeromq-*image*",
	} {
		t.Run(pattern, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join("..", "..", "scenarios", filepath.FromSlash(pattern)))
			if err != nil || len(files) == 0 {
				t.Fatalf("%d files, %v", len(files), err)
			}
			for _, file := range files {
				t.Run(filepath.Base(file), func(t *testing.T) {
					t.Parallel()
					path, _ := filepath.Rel(filepath.Join("..", "..", "scenarios"), file)
					runScenario(t, path, finishTimeout)
				})
			}
		})
	}
}

// longForms starts all files of a pattern below scenarios at once, and checks each run's results.
func longForms(t *testing.T, pattern string, count int, wallTime time.Duration) []plannedRun {
	t.Helper()
	root := filepath.Join("..", "..", "scenarios")
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil || len(files) != count {
		t.Fatalf("%s: %d files, %v; want %d", pattern, len(files), err, count)
	}
	begin := time.Now()
	var runs []plannedRun
	for _, file := range files {
		path, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, startScenario(t, path))
	}
	var verdicts tally
	for _, run := range runs {
		t.Run(strings.TrimPrefix(run.Name, "e4-"), func(t *testing.T) { checkLongForm(t, run, &verdicts) })
	}
	t.Logf("clean %d of %d; late entries %d, of which %d in stops of the host", verdicts.clean, len(runs), verdicts.late, verdicts.explained)
	if took := time.Since(begin); took > wallTime {
		t.Errorf("%d runs side by side took %v; want %v at most", count, took.Round(time.Second), wallTime)
	}
	return runs
}

// tally of runs' verdicts.
type tally struct{ clean, late, explained int }

// Limits in seconds above which the analysis calls these late (analysis/README.md). What else is late was not late for a moment in which the host
// stood still, or not for that alone.
var lateLimits = map[string]float64{"frames released late on ": 0.010, "started ": 0.010, "stopped ": 0.010, "positions and pathloss of ": 0.100}

// add wants that nothing was late but what stops of the whole host explain: while a hypervisor stops the machine nothing in it can be punctual, whatever
// the platform does, and the verdict says so. That is logged and counted, so that nobody takes such a run for a clean one.
func (c *tally) add(t *testing.T, name string, verdict *runapi.Verdict) {
	t.Helper()
	switch {
	case verdict == nil:
		t.Errorf("%s: no verdict", name)
	case verdict.KeptUp:
		c.clean++
	case len(verdict.Late) == 0:
		t.Errorf("%s: the verdict is not clean and names nothing that was late", name)
	default:
		for _, late := range verdict.Late {
			c.late++
			if explainedByAStop(late) {
				c.explained++
				t.Logf("%s: late as the host stood still: %+v", name, late)
			} else {
				t.Errorf("%s: late %+v; want that the emulation kept up", name, late)
			}
		}
	}
}

// explainedByAStop tells that without the host's standing still it would not have been too late.
func explainedByAStop(late runapi.Late) bool {
	for what, limit := range lateLimits {
		if strings.HasPrefix(late.What, what) {
			return late.StoodStillSeconds > 0 && late.WorstSeconds-late.StoodStillSeconds <= limit
		}
	}
	return false
}

func checkLongForm(t *testing.T, run plannedRun, verdicts *tally) {
	t.Helper()
	results := run.finish(t, time.Hour)
	verdicts.add(t, run.Name, results.Verdict)
	if run.link == "" {
		return // A vehicle that its radio leaves without a connection sends nothing.
	}
	if results.Messages.Sent != run.messages {
		t.Errorf("%s: %d messages sent; want %d", run.Name, results.Messages.Sent, run.messages)
	}
	for _, p := range results.Publishers {
		if p.Messages.Sent != run.messages/run.publishers {
			t.Errorf("%s: %s sent %d messages; want %d", run.Name, p.Name, p.Messages.Sent, run.messages/run.publishers)
		}
	}
}
