package progress

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestALineSaysWhichStepHowLongAndWhatIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		line Line
		want string
	}{
		"running":               {Line{Index: 3, Total: 9, Label: "build", Detail: "812 packages", Elapsed: 151 * time.Second, Left: 4 * time.Minute}, "[3/9] build 2m31s … (812 packages; about 4m00s left)"},
		"running, little left":  {Line{Index: 3, Total: 9, Label: "build", Elapsed: time.Second, Left: 3 * time.Second}, "[3/9] build 1.0s …"},
		"done":                  {Line{Index: 9, Total: 9, Label: "load", Detail: "2 loaded", Elapsed: 420 * time.Millisecond, State: Done}, "[9/9] load 0.4s (2 loaded)"},
		"failed":                {Line{Index: 1, Total: 2, Label: "check", Elapsed: 12 * time.Second, State: Failed}, "[1/2] check 12s FAILED"},
		"one step of no series": {Line{Label: "lint", Elapsed: 90 * time.Minute, State: Done}, "lint 1h30m"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.line.String(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestALongLineIsClippedToTheTerminal(t *testing.T) {
	if got := clip("abcdefgh…", 5); got != "abcd…" {
		t.Errorf("got %q", got)
	}
	if got := clip("abc", 5); got != "abc" {
		t.Errorf("got %q", got)
	}
}

func TestALogGetsOneLinePerStepAndRunStopsAtTheFirstFailure(t *testing.T) {
	var out bytes.Buffer
	r := &Reporter{out: &out, now: func() time.Time { return time.Time{} }, columns: func() int { return 0 }}
	broken := errors.New("broken")
	ran := false
	err := r.Run(t.Context(), []Step{
		{Label: "first", Do: func(_ context.Context, h *Handle) error { h.Detail("busy"); h.Result("fine"); return nil }},
		{Label: "second", Do: func(context.Context, *Handle) error { return broken }},
		{Label: "third", Do: func(context.Context, *Handle) error { ran = true; return nil }},
	})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "second: ") || ran {
		t.Errorf("error %v, third step ran: %v", err, ran)
	}
	if want := "[1/3] first 0.0s (fine)\n[2/3] second 0.0s FAILED\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestATerminalIsRefreshedInPlaceWithTheTimeThatIsLeft(t *testing.T) {
	var out bytes.Buffer
	r := &Reporter{out: &out, terminal: true, now: time.Now, columns: func() int { return 80 }}
	begun := func(_ context.Context, _ *Handle) error { time.Sleep(2 * terminalRefresh); return nil }
	err := r.Run(t.Context(), []Step{{Label: "one", Expect: time.Minute, Do: begun}, {Label: "two", Expect: time.Minute, Do: begun}})
	if err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, "\r\x1b[K[1/2] one") || !strings.Contains(text, "about 2m00s left") {
		t.Errorf("got %q", text)
	}
}
