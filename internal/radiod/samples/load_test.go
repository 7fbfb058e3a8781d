package samples

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"vignette.dev/vignette/internal/runapi"
)

// procOf writes files as /proc has them.
func procOf(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	writeProc(t, directory, files)
	return directory
}

// loadOf a folder such as procOf's.
func loadOf(t *testing.T, directory string) hostLoad {
	t.Helper()
	proc, err := procfs.NewFS(directory)
	if err != nil {
		t.Fatal(err)
	}
	return hostLoad{proc: proc, now: time.Now}
}

func writeProc(t *testing.T, directory string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHowBusyTheHostWasIsWrittenIntoEveryActiveRun(t *testing.T) {
	s := newSampler(t.TempDir())
	directory, at := procOf(t, map[string]string{"loadavg": "1.50 1.20 0.90 2/345 678\n"}), time.Now()
	s.load = loadOf(t, directory)
	s.load.now = func() time.Time { at = at.Add(1250 * time.Millisecond); return at }
	tick := func(stat, cpu, memory string) {
		t.Helper()
		writeProc(t, directory, map[string]string{
			"stat":         "cpu  " + stat + "\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 5\n",
			"pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + cpu + "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n", "pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + memory + "\n"})
		if err := s.sampleLoad(7e9); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.sample(1e9, countersOf(1, 0)); err != nil {
		t.Fatal(err)
	}
	tick("100 0 50 900 1 0 2 30 0 0", "1000000", "5")
	tick("150 10 70 980 9 1 4 90 40 0", "1250000", "5") // 50 + 10 + 20 + 1 + 2 ticks; guest time is in user's already
	tick("1 0 1 1 1 0 0 3 0 0", "1250000", "5")         // a live migration may reset counters
	a := &archive{}
	ship(t, s.runs["run"].spool, a)
	const line = `{"ts":7000000000,"seconds":1.25,"busySeconds":0.83,"cpus":2,"loadAverage":1.5,"cpuPressureSeconds":0.25,"memoryPressureSeconds":0}` + "\n"
	if got := strings.Count(string(a.content), "busySeconds"); got != 1 || !strings.HasSuffix(string(a.content), line) {
		t.Errorf("the run's log %q; want it to end with %q, once", a.content, line)
	}
}

// No load of the host can be told here, but the stolen time can.
func TestStolenTimeIsWrittenIntoEveryActiveRun(t *testing.T) {
	s := newSampler(t.TempDir())
	directory := t.TempDir()
	s.load = loadOf(t, directory)
	ticks := func(figures string) {
		writeProc(t, directory, map[string]string{"stat": "cpu  " + figures + "\n"})
		if err := s.sampleLoad(7e9); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%v; want that there is no loadavg", err)
		}
	}
	over, err := s.openRunLog("over")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sample(1e9, countersOf(1, 0)); err != nil {
		t.Fatal(err)
	}
	ticks("100 0 50 900 1 0 2 30 0 0")
	ticks("200 0 60 990 1 0 2 30 0 0")
	ticks("300 0 70 999 1 0 2 42 0 0")
	ticks("300 0 70 999 1 0 2 3 0 0") // a live migration may reset counters
	a, gone := &archive{}, &archive{}
	ship(t, s.runs["run"].spool, a)
	ship(t, over.spool, gone)
	const line = `{"ts":7000000000,"stolenSeconds":0.12}` + "\n"
	if got := strings.Count(string(a.content), "stolenSeconds"); got != 1 || !strings.HasSuffix(string(a.content), line) {
		t.Errorf("the run's log %q; want it to end with %q, once", a.content, line)
	}
	if len(gone.content) > 0 {
		t.Errorf("a run without attachments got %q; want nothing", gone.content)
	}
}

func TestTheLoadOfThisMachineIsRead(t *testing.T) {
	l := loadOf(t, ProcDirectory)
	if _, _, err := l.sinceLastCall(); err != nil {
		t.Errorf("this machine's: %v", err)
	}
	load, stolen, err := l.sinceLastCall()
	if err != nil || load == nil || load.CPUs == 0 || stolen > 60 {
		t.Errorf("%+v, within a moment the hypervisor took %v s, %v; want processors, and less than a minute", load, stolen, err)
	}
}

func TestAKernelWithoutPressureReportsTheRest(t *testing.T) {
	l := loadOf(t, procOf(t, map[string]string{"loadavg": "0.10 0 0 1/2 3\n", "stat": "cpu 1 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\n"}))
	l.now = func() time.Time { return time.Unix(0, 0) }
	if load, _, err := l.sinceLastCall(); load != nil || err != nil {
		t.Fatalf("at first: %+v, %v; want nothing yet", load, err)
	}
	load, _, err := l.sinceLastCall()
	text, _ := json.Marshal(load)
	if err != nil || load == nil || strings.Contains(string(text), "Pressure") || *load != (runapi.RadioLoad{CPUs: 1, LoadAverage: 0.1}) {
		t.Errorf("%s, %v; want one processor, a load of 0.1 and no pressure", text, err)
	}
}

func TestALoadThatCannotBeReadIsAnErrorThatNamesIt(t *testing.T) {
	good := map[string]string{"loadavg": "0.10 0 0 1/2 3\n", "stat": "cpu 1 0 0 0 0 0 0 0 0 0\n"}
	for name, c := range map[string]struct{ file, text, want string }{
		"no number":  {"stat", "cpu 1 2 x 4 5 6 7 8\n", "cpu 1 2 x"},
		"no average": {"loadavg", "much\n", "loadavg"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := procOf(t, good)
			writeProc(t, directory, map[string]string{c.file: c.text})
			l := loadOf(t, directory)
			if _, _, err := l.sinceLastCall(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want an error with %q", err, c.want)
			}
		})
	}
}

func TestTheProcessorIsNamedAsItsKernelDoes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"x86":         {"processor\t: 0\nvendor_id\t: V\nmodel name\t: A Processor @ 2.00GHz\nprocessor\t: 1\nmodel name\t: B\n", "A Processor @ 2.00GHz"},
		"without one": {"processor\t: 0\nCPU implementer\t: 0x41\n", ""},
	} {
		if got := CPUModel(procOf(t, map[string]string{"cpuinfo": c.text})); got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
	if got := CPUModel("/nowhere"); got != "" {
		t.Errorf("without cpuinfo: %q; want nothing", got)
	}
}
