package samples

import (
	"strings"
	"testing"
)

func TestStolenTimeIsWrittenIntoEveryActiveRun(t *testing.T) {
	s := newSampler(t.TempDir())
	s.stolen = stolenTime{directory: t.TempDir()}
	ticks := func(figures string) {
		writeProc(t, s.stolen.directory, map[string]string{"stat": "cpu  " + figures + "\n"})
		if err := s.sampleStolen(7e9); err != nil {
			t.Fatal(err)
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

func TestTheStolenTimeOfThisMachineIsRead(t *testing.T) {
	s := stolenTime{directory: ProcDirectory}
	if _, err := s.sinceLastCall(); err != nil {
		t.Errorf("this machine's: %v", err)
	}
	if took, err := s.sinceLastCall(); err != nil || took > 60 {
		t.Errorf("within a moment the hypervisor took %v s, %v; want less than a minute", took, err)
	}
}
