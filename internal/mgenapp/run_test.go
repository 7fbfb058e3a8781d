package mgenapp

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
)

// app is an instance that runs Debian's mgen on the loopback.
type app struct {
	t      *testing.T
	runner *Runner
	log    *syncbuffer.Buffer
	told   *syncbuffer.Buffer
	quiet  chan struct{}
	end    context.CancelFunc
	done   chan error
}

func startApp(t *testing.T, name, script string, planned time.Time) *app {
	t.Helper()
	return startQuietableApp(t, name, script, planned, make(chan struct{}))
}

func startQuietableApp(t *testing.T, name, script string, planned time.Time, quiet chan struct{}, changes ...func(*Runner)) *app {
	t.Helper()
	program := testtool.Need(t, "mgen")
	a := &app{t: t, log: &syncbuffer.Buffer{}, told: &syncbuffer.Buffer{}, quiet: quiet, done: make(chan error, 1)}
	// Both ends have the loopback's address, so that each is told that it is the other's.
	other := map[string]string{"a": "b", "b": "a"}[name]
	a.runner = &Runner{
		Config:  Config{Instance: fmt.Sprintf("%s/%s-%d", name, t.Name()[:20], os.Getpid()), Node: name, Script: script, Nodes: map[string]string{"127.0.0.1": other}},
		Program: program, Start: planned, Dir: t.TempDir(), Log: messagelog.NewWriter(a.log), Out: a.told, Warn: func(text string) { fmt.Fprintln(a.told, text) },
	}
	for _, change := range changes {
		change(a.runner)
	}
	a.run()
	return a
}

func (a *app) run() {
	var ctx context.Context
	a.runner.begun = false // as in a new process
	ctx, a.end = context.WithCancel(context.Background())
	go func() { a.done <- a.runner.Run(ctx, a.quiet) }()
	a.t.Cleanup(a.end)
}

// stop the app, and wait for its end.
func (a *app) stop() {
	a.t.Helper()
	a.end()
	select {
	case err := <-a.done:
		if err != nil {
			a.t.Errorf("run: %v\n%s", err, a.told)
		}
	case <-time.After(20 * time.Second):
		a.t.Fatalf("did not end within 20 s\n%s", a.told)
	}
}

func (a *app) records(status messagelog.Status) (found []messagelog.Record) {
	bad, err := messagelog.Read(strings.NewReader(a.log.String()), func(m messagelog.Record) {
		if m.Status == status {
			found = append(found, m)
		}
	})
	if bad > 0 || err != nil {
		a.t.Errorf("message log: %d bad lines, %v", bad, err)
	}
	return found
}

func TestDebiansMgenRunsAScriptAndItsLogIsTheMessageLog(t *testing.T) {
	t.Parallel()
	udp, tcp := testport.Free(t), testport.Free(t)
	planned := time.Now()
	receiver := startApp(t, "b", fmt.Sprintf("0.0 LISTEN UDP %d\n0.0 LISTEN TCP %d", udp, tcp), planned)
	// A busy machine may need all three tries to start mgen. That takes less than 4 s.
	sender := startApp(t, "a", fmt.Sprintf(`
4.0 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 100]
4.5 MOD 1 PERIODIC [10 200]
5.0 OFF 1
5.3 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 300] COUNT 5
4.0 ON 2 TCP DST 127.0.0.1/%d PERIODIC [4 200000] COUNT 3`, udp, udp, tcp), planned)
	time.Sleep(6100 * time.Millisecond)
	sender.waitFor("all messages", func() bool {
		second, tcp := 0, 0
		for _, m := range sender.records(messagelog.Sent) {
			switch m.Bytes {
			case 300:
				second++
			case 200000:
				tcp++
			}
		}
		return second == 5 && tcp == 3 && len(receiver.records(messagelog.Received)) >= len(sender.records(messagelog.Sent))
	})
	sender.stop()
	receiver.stop()

	sent, received := sender.records(messagelog.Sent), receiver.records(messagelog.Received)
	if len(sent) != len(received) {
		t.Errorf("%d sent, %d received; want all, on the loopback\n%s\n%s", len(sent), len(received), sender.told, receiver.told)
	}
	times := map[string]int64{}
	count := map[string]int{}
	for _, m := range sent {
		times[m.ID+" "+m.Topic] = m.TimeNanoseconds
		count[fmt.Sprintf("%s %s %d", strings.TrimPrefix(m.Instance, sender.runner.Config.Instance), strings.Split(m.ID, "_")[0], m.Bytes)]++
	}
	// Ten messages in the first half second and five in the second, less or more one at the ends; five and three by COUNT.
	if n := count["/1 a/1 100"]; n < 9 || n > 11 {
		t.Errorf("%d messages of the first pattern; want about 10: %v", n, count)
	}
	if n := count["/1 a/1 200"]; n < 4 || n > 6 {
		t.Errorf("%d messages of the changed pattern; want about 5: %v", n, count)
	}
	if count["/1 a/1.1 300"] != 5 || count["/2 a/2 200000"] != 3 {
		t.Errorf("%v; want 5 messages of the second life of flow 1, and 3 of flow 2", count)
	}
	for _, m := range received {
		at, ok := times[m.ID+" "+m.Topic]
		if !ok || m.TimeNanoseconds < at || m.Instance != receiver.runner.Config.Instance {
			t.Errorf("received %+v, sent at %d, %v", m, at, ok)
		}
	}
	// A busy machine may be late; it cannot be early, and mgen's own start is no part of it.
	if first := sent[0].TimeNanoseconds - planned.UnixNano(); first < 3999e6 || first > 5000e6 {
		t.Errorf("the first message was sent %v after the planned start; want 4 s", time.Duration(first))
	}
}

func TestQuietTurnsFlowsOffAndReceivesOn(t *testing.T) {
	t.Parallel()
	portA, portB := testport.Free(t), testport.Free(t)
	planned := time.Now()
	both := startApp(t, "a", fmt.Sprintf("0 LISTEN UDP %d\n0.2 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 100]\n1.5 ON 2 UDP DST 127.0.0.1/%d PERIODIC [20 100]", portA, portB, portB), planned)
	other := startApp(t, "b", fmt.Sprintf("0.2 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 100]", portA), planned)
	both.waitFor("messages of both", func() bool {
		return len(both.records(messagelog.Sent)) >= 10 && len(both.records(messagelog.Received)) >= 10
	})
	close(both.quiet)
	sent := -1
	both.waitFor("ten periods without a message, also of the flow that begins later", func() bool {
		before := sent
		sent = len(both.records(messagelog.Sent))
		time.Sleep(500 * time.Millisecond)
		return sent == before && time.Since(planned) > 3*time.Second
	})
	received := len(both.records(messagelog.Received))
	both.waitFor("messages after that", func() bool { return len(both.records(messagelog.Received)) >= received+10 })
	if more := len(both.records(messagelog.Sent)) - sent; more != 0 {
		t.Errorf("sent %d messages after it had fallen quiet", more)
	}
	both.stop()
	other.stop()
}

func TestNothingThatIsDueAtThePlannedStopIsSentAndReceptionGoesOn(t *testing.T) {
	t.Parallel()
	portA, portB := testport.Free(t), testport.Free(t)
	planned := time.Now()
	stop := planned.Add(6 * time.Second)
	// A busy machine may need 4 s to start mgen.
	script := fmt.Sprintf("0 LISTEN UDP %d\n5.0 ON 1 UDP DST 127.0.0.1/%d PERIODIC [10 100]\n6.0 ON 2 UDP DST 127.0.0.1/%d PERIODIC [10 100]", portA, portB, portB)
	stopped := startQuietableApp(t, "a", script, planned, make(chan struct{}), func(r *Runner) { r.Stop = stop })
	says := startApp(t, "b", fmt.Sprintf("0.2 ON 1 UDP DST 127.0.0.1/%d PERIODIC [10 100]", portA), planned)
	stopped.waitFor("messages that come half a second after the stop", func() bool {
		received := stopped.records(messagelog.Received)
		return len(received) > 0 && received[len(received)-1].TimeNanoseconds > stop.Add(500*time.Millisecond).UnixNano()
	})
	sent := stopped.records(messagelog.Sent)
	for _, m := range sent {
		if !strings.HasPrefix(m.ID, "a/1_") {
			t.Errorf("sent %s; want none of a flow that begins at the stop", m.ID)
		}
	}
	if len(sent) == 0 || len(sent) > 10 {
		t.Errorf("sent %d messages; want the 10 that are due before the stop", len(sent))
	}
	stopped.stop()
	says.stop()
}

func TestAnAppThatIsQuietFromItsStartOnlyReceives(t *testing.T) {
	t.Parallel()
	portA, portB := testport.Free(t), testport.Free(t)
	planned := time.Now()
	script := fmt.Sprintf("0 LISTEN UDP %d\n0 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 100]\n0.5 ON 2 UDP DST 127.0.0.1/%d PERIODIC [20 100]", portA, portB, portB)
	quiet := make(chan struct{})
	close(quiet)
	hears := startQuietableApp(t, "a", script, planned, quiet)
	says := startApp(t, "b", fmt.Sprintf("0.2 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 100]", portA), planned)
	hears.waitFor("messages for a second after its flows would have begun", func() bool {
		return len(hears.records(messagelog.Received)) >= 10 && time.Since(planned) > 2*time.Second
	})
	if sent := len(hears.records(messagelog.Sent)); sent != 0 {
		t.Errorf("sent %d messages; want none", sent)
	}
	hears.stop()
	says.stop()
}

// waitFor waits for up to 20 s: a busy host takes a while to start mgen.
func (a *app) waitFor(what string, ok func() bool) {
	a.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("after 20 s still not: %s\n%s", what, a.told)
		}
	}
}

func (a *app) waitForSent(messages int) {
	a.t.Helper()
	a.waitFor(fmt.Sprintf("%d messages sent", messages), func() bool { return len(a.records(messagelog.Sent)) >= messages })
}

func TestARestartedAppGoesOnWithNewNumbers(t *testing.T) {
	t.Parallel()
	port := testport.Free(t)
	a := startApp(t, "a", fmt.Sprintf("0.2 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 100]\n0.2 ON 2 UDP DST 127.0.0.1/%d PERIODIC [50 100] COUNT 2", port, port), time.Now())
	a.waitForSent(5)
	a.stop()
	before := len(a.records(messagelog.Sent))
	a.run()
	a.waitForSent(before + 5)
	a.stop()
	ids := map[string]bool{}
	for i, m := range a.records(messagelog.Sent) {
		if ids[m.ID] {
			t.Errorf("id %s is used twice", m.ID)
		}
		ids[m.ID] = true
		if want := map[bool]string{true: "a/1.256_", false: "a/"}[i >= before]; !strings.HasPrefix(m.ID, want) {
			t.Errorf("message %d has id %s; want %s…", i, m.ID, want)
		}
	}
	if len(ids) < before+5 || before < 5 {
		t.Errorf("%d messages, %d before the restart; want it to go on\n%s", len(ids), before, a.told)
	}
}

func TestAnAppThatTheTimelineStartsAgainBeginsItsScriptAnew(t *testing.T) {
	t.Parallel()
	a := startApp(t, "a", fmt.Sprintf("0.0 ON 1 UDP DST 127.0.0.1/%d PERIODIC [20 100] COUNT 3", testport.Free(t)), time.Now())
	a.waitForSent(3)
	a.stop()
	a.runner.Start = time.Now()
	a.run()
	a.waitForSent(6)
	a.stop()
	if told := a.told.String(); strings.Contains(told, "was restarted") {
		t.Errorf("it says %q; want no word of a restart", told)
	}
}

func TestAnMgenThatFailsIsAnErrorAndOneThatIsDoneIsNone(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{"false": "mgen ended with exit status 1", "true": ""} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		timeout := 10 * time.Second // a busy host takes a while to start a program
		if want == "" {
			timeout = 300 * time.Millisecond
		}
		r := &Runner{Config: Config{Instance: "a/b", Node: "a", Script: "0 LISTEN UDP 5"}, Program: path, Start: time.Now(), Dir: t.TempDir(),
			Log: messagelog.NewWriter(io.Discard), Out: io.Discard, Warn: func(string) {}}
		began := time.Now() // before the time limit is: making the rest may take a while
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		err = r.Run(ctx, nil)
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && (err != nil || time.Since(began) < 300*time.Millisecond) {
			t.Errorf("%s: %v after %s; want %q, and an app that lives until it is stopped", program, err, time.Since(began), want)
		}
		cancel()
	}
}

func TestEveryFlowHasItsNameInTheMessageLog(t *testing.T) {
	if got := Sender("veh-1/voice", 7); got != "veh-1/voice/7" {
		t.Errorf("got %s", got)
	}
	if flow, life := mgen.FlowOf(mgen.WireFlow(7, 3, 0)); flow != 7 || life != 3 {
		t.Errorf("got flow %d, life %d", flow, life)
	}
}
