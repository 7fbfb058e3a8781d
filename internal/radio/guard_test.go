package radio

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/teststall"
)

// boundLoop is a network of an engine with guards, whose loop stays on a processor.
func boundLoop(t *testing.T, processor int) *Network {
	t.Helper()
	n := newNetworkWith(t, &wait{}, Options{Nice: -10, Guards: GuardsAlways})
	var loop int
	n.Do(func(n *Network, _ Model) { loop = n.loop.thread })
	if err := clock.Bind(loop, processor); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAProcessorThatStandsStillMakesNoFrameLate(t *testing.T) {
	processors := guarded()
	if len(processors) < 2 {
		t.Skip("one processor: nothing goes on while it stands still")
	}
	n := boundLoop(t, processors[0])
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // what keeps the processor busy takes a place in Go's scheduler too
	const rounds, still, tolerated = 11, 100 * time.Millisecond, 10 * time.Millisecond
	var late []time.Duration
	for range rounds {
		rang := make(chan int64, 1)
		begin, due := time.Now(), clock.Monotonic()+int64(still/3)
		ended := make(chan error)
		go func() { ended <- teststall.Occupy(processors[0], begin.Add(still/6), still) }()
		n.Schedule(due, func(now int64, _ Model) (bool, int64) { rang <- now; return false, 0 })
		if err := <-ended; err != nil {
			t.Skipf("not allowed here: %v", err)
		}
		late = append(late, time.Duration(<-rang-due))
	}
	slices.Sort(late)
	if median := late[rounds/2]; median > tolerated { // not the worst, as the test's own machine may stand still as well
		t.Errorf("an alarm came %v late in most rounds while the loop's processor stood still for %v; want %v at most", median, still, tolerated)
	}
}

func TestEnginesEndWithTheirGuards(t *testing.T) {
	count := func() int {
		ids, err := threads()
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	e, err := New(Options{Guards: GuardsAlways})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	before := count()
	for range 20 {
		e, err := New(Options{Loops: 2, Guards: GuardsAlways})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(5 * time.Second); count() > before+10; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d threads after 20 engines have ended; want about the %d from before", count(), before)
		}
	}
}

func TestGuardsAreWhereTheOptionSays(t *testing.T) {
	if len(guarded()) == 0 {
		t.Skip("one processor: nothing goes on while it stands still")
	}
	onVirtual := 0
	if clock.Virtual() {
		onVirtual = mostGuards
	}
	for text, want := range map[string]int{"auto": onVirtual, "always": mostGuards, "never": 0} {
		var option Guards
		if err := option.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		e, err := New(Options{Guards: option})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(e.guards); got != want {
			t.Errorf("%s: %d guards; want %d", text, got, want)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var option Guards
	if err := option.UnmarshalText([]byte("off")); err == nil || !strings.Contains(err.Error(), `"off": want auto, always or never`) {
		t.Errorf("error %v; want one that says what would be right", err)
	}
}

// TestBothGuardsLookWhereTheLoopIsOnOneOfTheirProcessors, as its timer may wake it up on the other one, which stands still.
func TestBothGuardsLookWhereTheLoopIsOnOneOfTheirProcessors(t *testing.T) {
	processors := guarded()
	if len(processors) < 2 {
		t.Skip("one processor: nothing goes on while it stands still")
	}
	for _, on := range processors {
		n := boundLoop(t, on)
		due := clock.Monotonic() + int64(time.Minute)
		n.Schedule(due, func(int64, Model) (bool, int64) { return false, 0 })
		n.engine.Answer() // the loop has told of it by the end of the turn before
		for _, g := range n.engine.guards {
			if until := g.until.Load(); until != due+guardGrace {
				t.Errorf("the loop is on processor %d: the guard of %d looks at %d; want %d after what is due", on, g.processor, until-due, guardGrace)
			}
		}
	}
}
