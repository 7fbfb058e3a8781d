package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

// splitOutput is a splitter's result for an app's output.
type splitOutput struct {
	messages, output bytes.Buffer
	told             []runapi.AgentEvent
}

func (s *splitOutput) splitter() *splitter {
	return &splitter{instance: "nor/own", messages: &s.messages, output: &s.output, now: func() int64 { return 1588759108433123457 },
		report: func(e runapi.AgentEvent) { s.told = append(s.told, e) }}
}

// of splits output that arrives in pieces of a size.
func splitInPieces(output string, size int) *splitOutput {
	s := &splitOutput{}
	w := s.splitter()
	for piece := range slices.Chunk([]byte(output), size) {
		_, _ = w.Write(piece)
	}
	w.flush()
	return s
}

const (
	wholeEvent  = `{"ts":1588759108433123456,"instance":"nor/own","status":"sent","id":"a"}` + "\n"
	eventOfHere = `{"ts":1588759108433123457,"instance":"nor/own","status":"sent","id":"a"}` + "\n"
)

func TestMessageEventsAreTakenOutOfStandardOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxEventLine)
	for name, c := range map[string]struct{ in, messages, output, told string }{
		"nothing":                         {"", "", "", ""},
		"text":                            {"hello\nworld", "", "hello\nworld", ""},
		"an event":                        {wholeEvent, wholeEvent, "", ""},
		"an event between text":           {"a\n" + wholeEvent + "b\n", wholeEvent, "a\nb\n", ""},
		"an event without its end":        {strings.TrimSpace(wholeEvent), wholeEvent, "", ""},
		"events with \\r\\n and blanks":   {"  " + strings.TrimSpace(wholeEvent) + "\r\n", wholeEvent, "", ""},
		"one without time and instance":   {`{"status":"sent","id":"a"}` + "\n", eventOfHere, "", eventStamped},
		"two without time are told once":  {strings.Repeat(`{"status":"sent","id":"a"}`+"\n", 2), eventOfHere + eventOfHere, "", eventStamped},
		"an event of another instance":    {`{"ts":1588759108433123456,"instance":"prt/x","status":"sent","id":"a"}` + "\n", `{"ts":1588759108433123456,"instance":"prt/x","status":"sent","id":"a"}` + "\n", "", ""},
		"fields that are not ours":        {`{"ts":1588759108433123456,"status":"received","id":"a","rssi":-90,"topic":"t","bytes":3}` + "\n", `{"ts":1588759108433123456,"instance":"nor/own","status":"received","id":"a","topic":"t","bytes":3}` + "\n", "", ""},
		"an event with a position":        {`{"ts":1588759108433123456,"status":"sent","id":"a","position":[58.1,-7.9,20]}` + "\n", `{"ts":1588759108433123456,"instance":"nor/own","status":"sent","id":"a","position":[58.1,-7.9,20]}` + "\n", "", ""},
		"a position without altitude":     {`{"ts":1588759108433123456,"status":"sent","id":"a","position":[58.1,7]}` + "\n", `{"ts":1588759108433123456,"instance":"nor/own","status":"sent","id":"a","position":[58.1,7]}` + "\n", "", ""},
		"a position of one number":        {`{"ts":1588759108433123456,"status":"sent","id":"a","position":[58.1,null]}` + "\n", `{"ts":1588759108433123456,"instance":"nor/own","status":"sent","id":"a","position":[58.1,null]}` + "\n", "", ""},
		"a position that is none":         {`{"ts":1588759108433123456,"status":"sent","id":"a","position":"58.1 N"}` + "\n", "", `{"ts":1588759108433123456,"status":"sent","id":"a","position":"58.1 N"}` + "\n", eventNoMessage},
		"JSON of something else":          {`{"level":"info"}` + "\n", "", `{"level":"info"}` + "\n", ""},
		"a status without id":             {`{"ts":1588759108433123456,"status":"sent"}` + "\n", "", `{"ts":1588759108433123456,"status":"sent"}` + "\n", eventNoMessage},
		"a time in whole seconds":         {`{"ts":1588759108,"status":"sent","id":"a"}` + "\n", "", `{"ts":1588759108,"status":"sent","id":"a"}` + "\n", eventNoMessage},
		"a time in milliseconds":          {`{"ts":1588759108433,"status":"sent","id":"a"}` + "\n", "", `{"ts":1588759108433,"status":"sent","id":"a"}` + "\n", eventNoMessage},
		"a time in microseconds":          {`{"ts":1588759108433123,"status":"sent","id":"a"}` + "\n", "", `{"ts":1588759108433123,"status":"sent","id":"a"}` + "\n", eventNoMessage},
		"a time in seconds":               {`{"ts":5.5,"status":"sent","id":"a"}` + "\n", "", `{"ts":5.5,"status":"sent","id":"a"}` + "\n", eventNoMessage},
		"a torn event":                    {`{"ts":1588759108433123456,"id":"a","status":"se`, "", `{"ts":1588759108433123456,"id":"a","status":"se`, eventNoMessage},
		"a line too long for an event":    {`{"ts":1588759108433123456,"status":"sent","id":"` + long + `"}` + "\n" + wholeEvent, wholeEvent, `{"ts":1588759108433123456,"status":"sent","id":"` + long + `"}` + "\n", eventNoMessage},
		"a long line of something else":   {`{"level":"` + long + `"}` + "\n", "", `{"level":"` + long + `"}` + "\n", ""},
		"a line that is not text":         {"\x00\xff{\n", "", "\x00\xff{\n", ""},
		"empty lines":                     {"\n\n\n", "", "\n\n\n", ""},
		"many blanks before text":         {strings.Repeat(" ", 40) + "x\n", "", strings.Repeat(" ", 40) + "x\n", ""},
		"an event within a line is text":  {"x " + wholeEvent, "", "x " + wholeEvent, ""},
		"letters that JSON could escape":  {`{"ts":1588759108433123456,"status":"sent","id":"<&>"}` + "\n", `{"ts":1588759108433123456,"instance":"nor/own","status":"sent","id":"\u003c\u0026\u003e"}` + "\n", "", ""},
		"a status that the log has not":   {`{"ts":1588759108433123456,"status":"lost","id":"a"}` + "\n", "", `{"ts":1588759108433123456,"status":"lost","id":"a"}` + "\n", ""},
		"a negative time":                 {`{"ts":-5,"status":"sent","id":"a"}` + "\n", "", `{"ts":-5,"status":"sent","id":"a"}` + "\n", eventNoMessage},
		"two events on one line are none": {strings.TrimSpace(wholeEvent) + wholeEvent, "", strings.TrimSpace(wholeEvent) + wholeEvent, eventNoMessage},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			s := splitInPieces(c.in, size)
			var told string
			for _, e := range s.told {
				told += e.Event
			}
			if s.messages.String() != c.messages || s.output.String() != c.output || told != c.told {
				t.Errorf("%s, in pieces of %d:\nmessages %.200q, want %.200q\noutput %.200q, want %.200q\ntold %q, want %q",
					name, size, s.messages.String(), c.messages, s.output.String(), c.output, told, c.told)
			}
		}
	}
}

func TestWhyALineIsNoMessageEventIsSaidInWords(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]string{
		`{"ts":5.5,"status":"sent","id":"a"}`:                                                "ts is 5.5: want nanoseconds since the Unix epoch, an integer",
		`{"ts":1e99,"status":"sent","id":"a"}`:                                               "ts is 1e99: want nanoseconds since the Unix epoch, an integer",
		`{"ts":"now","status":"sent","id":"a"}`:                                              "ts is a text: want nanoseconds since the Unix epoch, an integer",
		`{"ts":5,"status":"sent","id":"a"}`:                                                  "ts is 5: want nanoseconds since the Unix epoch",
		`{"status":"sent","id":7}`:                                                           "id is a number: want a text",
		`{"status":"sent","id":"a","bytes":2.5}`:                                             "bytes is 2.5: want an integer",
		`{"status":"sent","id":"a","position":[58.1,"7 W",20]}`:                              "position is a text: want numbers: latitude, longitude and, if it is known, altitude",
		`{"status":"sent","id":"a"`:                                                          "it is not one whole JSON object",
		`{"ts":1588759108433123456,"status":"sent","id":"a"} {"status":"received","id":"a"}`: "it is not one whole JSON object",
	} {
		told := splitInPieces(event+"\n", len(event)).told
		if len(told) != 1 || told[0].Message != "a line of standard output looks like a message event and is invalid, as others may be: "+want+": "+event {
			t.Errorf("%s: told %+v; want %q", event, told, want)
		}
	}
}

func TestALineThatIsTooLongForAMessageEventIsTold(t *testing.T) {
	t.Parallel()
	line := `{"status":"sent","id":"a","payload":"` + strings.Repeat("x", maxEventLine)
	told := splitInPieces(line+"\"}\n", 4096).told
	const want = "a line of standard output looks like a message event and is invalid, as others may be: it has more than 64 KiB: "
	if len(told) != 1 || told[0].Message != want+line[:200]+" …" {
		t.Errorf("told %+v; want %q and its beginning", told, want)
	}
}

func TestTextIsNotHeldBackUntilItsLineEnds(t *testing.T) {
	t.Parallel()
	s := &splitOutput{}
	_, _ = s.splitter().Write([]byte("password: "))
	if got := s.output.String(); got != "password: " {
		t.Errorf("output %q; want the prompt at once", got)
	}
}

func TestAnOverlongLineIsNotKeptInMemory(t *testing.T) {
	t.Parallel()
	s := &splitOutput{}
	w := s.splitter()
	for range 64 {
		_, _ = w.Write(bytes.Repeat([]byte("{"), maxEventLine/4))
	}
	if len(w.line) > maxEventLine || cap(w.line) > 4*maxEventLine {
		t.Errorf("%d bytes are held in a buffer of %d", len(w.line), cap(w.line))
	}
}

func TestMessageEventsOnStandardOutputAreArchivedAsMessages(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `echo "log to ${VIGNETTE_MESSAGE_LOG-stdout}"; echo '{"ts":1588759108433123456,"status":"sent","id":"a"}'; printf '{"status":"received","id":"b"}'`)
	n.config.MessagesOnStdout = true
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentStopped)
	s.finish()
	n.waitExit()
	if got := s.log("stdout-1.log"); got != "log to stdout\n" {
		t.Errorf("archived output %q; want what is no message event", got)
	}
	var records []messagelog.Record
	bad, err := messagelog.Read(strings.NewReader(s.log("messages-1.jsonl")), func(r messagelog.Record) { records = append(records, r) })
	if err != nil || bad != 0 || len(records) != 2 || records[0].Instance != "nor/bft/1" || records[1].TimeNanoseconds < 1e18 {
		t.Errorf("archived messages %+v, %d bad, %v; want two, of nor/bft/1, with times", records, bad, err)
	}
	if told := s.event(t, eventStamped); len(told) != 1 {
		t.Errorf("events %+v; want one of times that the agent gave", told)
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("hello\n"+wholeEvent+"x"), 3)
	f.Add([]byte(`{"status":"sent","id":"a"}`+"\n"+`{"ts":1e99,"status":"sent","id":"é"}`), 1)
	f.Add([]byte(`{"a":"`+strings.Repeat("x", 100)+"\n{\n\r\n \n"), 50)
	f.Fuzz(func(t *testing.T, output []byte, size int) {
		if size < 1 {
			size = 1
		}
		s, whole := splitInPieces(string(output), size), splitInPieces(string(output), len(output)+1)
		if s.messages.String() != whole.messages.String() || s.output.String() != whole.output.String() {
			t.Fatalf("in pieces of %d: messages %q, output %q; at once: messages %q, output %q", size, s.messages.String(), s.output.String(), whole.messages.String(), whole.output.String())
		}
		records := 0
		bad, err := messagelog.Read(bytes.NewReader(s.messages.Bytes()), func(messagelog.Record) { records++ })
		if bad != 0 || err != nil {
			t.Fatalf("%d bad records, %v in %q", bad, err, s.messages.String())
		}
		// Nothing is lost or invented: lines that are missing in the output are events.
		lines := 0
		rest := s.output.Bytes()
		for line := range bytes.Lines(output) {
			if after, found := bytes.CutPrefix(rest, line); found {
				rest = after
				continue
			}
			var r messagelog.Record
			if json.Unmarshal(line, &r) != nil {
				t.Fatalf("line %q is lost", line)
			}
			lines++
		}
		if len(rest) > 0 || lines != records {
			t.Fatalf("%d lines were taken out and %d records made; %q is left", lines, records, rest)
		}
	})
}

// FuzzAnswers gives the agent a broken or hostile server's answers.
func FuzzAnswers(f *testing.F) {
	f.Add(uint16(200), []byte(`{"revision":1,"finish":true}`), uint16(200), []byte(`[{"status":409,"error":"offset","size":3}]`))
	f.Add(uint16(200), []byte(`{"t0":"2030-01-01T00:00:00Z","actions":[{"id":"a","verb":"start"}]}`), uint16(200), []byte(`[{"status":200,"size":9223372036854775807}]`))
	f.Add(uint16(410), []byte(`<html>`), uint16(200), []byte(`[{"status":409,"size":-1}]`))
	f.Add(uint16(200), []byte(`{}`), uint16(409), []byte(`{"error":"offset","size":3}`))
	f.Fuzz(func(t *testing.T, planStatus uint16, plan []byte, logStatus uint16, log []byte) {
		hostile := newHostileServer(t, planStatus, plan, logStatus, log)
		a, err := New(agentconfig.Config{Server: hostile, RunUID: "u", Node: "n", App: "b"},
			Options{LogDir: t.TempDir(), TokenFile: "/dev/null", Stderr: &bytes.Buffer{}})
		if err != nil {
			t.Fatal(err)
		}
		defer a.events.closer.Close()
		for range 2 {
			if answer, err := a.server.AgentPlan(t.Context(), "b", 0); err == nil {
				a.accept(answer)
			}
			_ = a.reportOnce(t.Context())
			fmt.Fprintln(a.events.file, "a line")
			_, _ = a.shipper.shipRound(t.Context(), 1<<20, true)
		}
		for file, position := range a.shipper.positions {
			if position < 0 {
				t.Errorf("position of %s is %d", file, position)
			}
		}
		if own := spoolBytes(a.logDir); own > 64<<10 {
			t.Errorf("four requests have made %d bytes of logs", own)
		}
	})
}
