//go:build e2e && long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// TestLongFormsOfE4 runs twelve of setting 2, all that start at once and need no external image, at full length side by side. Nothing may be late, as
// overload looks like a radio's effect, unless the machine itself paused meanwhile.
func TestLongFormsOfE4(t *testing.T) {
	longForms(t, "e4/setting2-m*.yaml", 12, 30*time.Minute)
}

func TestLongFormsOfE4WithTwoNations(t *testing.T) {
	longForms(t, "e4/setting1-m*.yaml", 6, 30*time.Minute)
}

func TestLongFormsOfE3(t *testing.T) {
	for _, run := range longForms(t, "e3/[is]*.yaml", 2, 50*time.Minute) {
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

// TestShortFormsOfTheStudies runs those that continuous integration leaves out and that need no external image, a few at a time.
func TestShortFormsOfTheStudies(t *testing.T) {
	for _, pattern := range []string{
		"e1/short/*", "e2/short/wsn*", "e2/short/rabbitmq*", "e2/short/mqttsn-mosquitto*", "e4/short/*rabbitmq*",
		"e5/short/nffi-*", "e5/short/rest-*", "e6/short/messages-[ch]*", "e6/short/messages-soap*", "e6/short/bft-*",
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
	clean := 0
	for _, run := range runs {
		t.Run(strings.TrimPrefix(run.Name, "e4-"), func(t *testing.T) { checkLongForm(t, run, &clean) })
	}
	t.Logf("the emulation kept up in %d of %d", clean, len(runs))
	if took := time.Since(begin); took > wallTime {
		t.Errorf("%d runs side by side took %v; want %v at most", count, took.Round(time.Second), wallTime)
	}
	return runs
}

// keptUp reports whether the emulation kept up. A failed verdict names the exceeded bounds.
func keptUp(t *testing.T, name string, verdict *runapi.Verdict) bool {
	t.Helper()
	if verdict == nil {
		t.Errorf("%s: no verdict", name)
		return false
	}
	if !verdict.KeptUp && len(verdict.Exceeded) == 0 {
		t.Errorf("%s: the verdict is no and names nothing that was exceeded", name)
	}
	t.Logf("%s: kept up %t, exceeded %q", name, verdict.KeptUp, verdict.Exceeded)
	return verdict.KeptUp
}

func checkLongForm(t *testing.T, run plannedRun, clean *int) {
	t.Helper()
	results := run.finish(t, time.Hour)
	if keptUp(t, run.Name, results.Verdict) {
		*clean++
	}
	if run.link == "" {
		return // A vehicle without a connection over its radio sends nothing.
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
