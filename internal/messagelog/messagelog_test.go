package messagelog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/quick"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
)

func TestRecordsComeBackAsWritten(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	want := []Record{
		{TimeNanoseconds: 1588759108433123456, Instance: "nor/bft/1", Status: Sent, ID: "NOR-S001_1", Topic: "/NOR", Bytes: 240},
		{TimeNanoseconds: 1588759108433123457, Instance: "prt/all", Status: Received, ID: "NOR-S001_1"},
	}
	for _, r := range want {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var got []Record
	bad, err := Read(&out, func(r Record) { got = append(got, r) })
	if err != nil || bad != 0 || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Fatalf("read %+v, %d bad, %v; want %+v", got, bad, err, want)
	}
}

// writes counts what reaches the file.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestRecordsThatComeTogetherAreOneWriteOfWholeLines(t *testing.T) {
	var out writes
	w := NewWriter(&out)
	for range 2 {
		err := w.Write(Record{TimeNanoseconds: 1, Instance: "a/b", Status: Received, ID: "x"}, Record{TimeNanoseconds: 2, Instance: "a/b", Status: Processed, ID: "x"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * gather)
	}
	const want = `{"ts":1,"instance":"a/b","status":"received","id":"x"}` + "\n" + `{"ts":2,"instance":"a/b","status":"processed","id":"x"}` + "\n"
	if len(out) != 2 || out[0] != want || out[1] != want {
		t.Errorf("wrote %q; want twice %q", out, want)
	}
}

func TestRecordsThatComeFastAreGatheredAndSoonThere(t *testing.T) {
	out := &syncbuffer.Buffer{}
	counted := &countingWriter{to: out}
	w := NewWriter(counted)
	const records = 5000
	for i := range records {
		if err := w.Write(Record{TimeNanoseconds: 1, Instance: "a/b", Status: Sent, ID: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(5 * time.Second); strings.Count(out.String(), "\n") < records && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got, writes := strings.Count(out.String(), "\n"), counted.writes.Load(); got != records || writes > records/10 {
		t.Errorf("%d lines in %d writes without a flush; want %d in few", got, writes, records)
	}
}

type countingWriter struct {
	to     io.Writer
	writes atomic.Int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.to.Write(p)
}

func TestALostRecordIsToldOfByTheNextWrite(t *testing.T) {
	w := NewWriter(refusing{})
	for range 2 * maxWaiting / 60 {
		if err := w.Write(Record{TimeNanoseconds: 1, Instance: "a/b", Status: Sent, ID: "some-longer-id_1234567890"}); errors.Is(err, ErrLost) {
			return
		}
	}
	t.Error("no write told that records are lost")
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestRecordsAreWhatJSONWouldMakeOfThem(t *testing.T) {
	check := func(ts int64, instance, status, id, topic string, bytes int, text string) bool {
		r := Record{TimeNanoseconds: ts, Instance: instance, Status: Status(status), ID: id, Topic: topic, Bytes: bytes, Text: text}
		want, err := json.Marshal(r)
		return err == nil && string(r.append(nil)) == string(want)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	if !check(1, `a"b`, "sent", "<&>", "é/\u2028\\", 7, "\x00\xff") {
		t.Error("special characters are not what JSON makes of them")
	}
}

func TestAPositionComesBackAsItWasWritten(t *testing.T) {
	check := func(latitude, longitude, altitude float64) bool {
		r := Record{TimeNanoseconds: 1, Instance: "a/b", Status: Triggered, ID: "x", Position: &[3]float64{latitude, longitude, altitude}}
		var got Record
		err := json.Unmarshal(r.append(nil), &got)
		return err == nil && got.Position != nil && *got.Position == *r.Position
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	if got := string(Record{Position: &[3]float64{58.1, -7.9, 0}}.append(nil)); !strings.HasSuffix(got, `,"position":[58.1,-7.9,0]}`) {
		t.Errorf("record %s; want the position at its end", got)
	}
}

func TestBadLinesAreCountedAndSkipped(t *testing.T) {
	in := strings.Join([]string{
		`{"ts":1588759108433123456,"instance":"a/b","status":"sent","id":"x"}`,
		`not JSON`,
		`{"ts":1588759108433123,"instance":"a/b","status":"sent","id":"in microseconds"}`,
		`{"ts":1588759108433123456,"instance":"","status":"sent","id":"x"}`,
		`{"ts":1588759108433123456,"instance":"a/b","status":"lost","id":"x"}`,
		``,
		`{"ts":1588759108433123457,"instance":"a/b","status":"processed","id":"x"}`,
		`{"ts":1588759108433123458,"instance":"a/b","sta`,
	}, "\n")
	good := 0
	bad, err := Read(strings.NewReader(in), func(Record) { good++ })
	if err != nil || good != 2 || bad != 5 {
		t.Fatalf("read %d good, %d bad, %v; want 2 good, 5 bad", good, bad, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"ts":1588759108433123456,"instance":"a/b","status":"sent","id":"x"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Read(bytes.NewReader(data), func(r Record) {
			if err := r.Validate(); err != nil {
				t.Errorf("an invalid record came through: %v", err)
			}
		})
	})
}

func TestAnUnknownStatusIsToldEveryOneThatThereIs(t *testing.T) {
	r := Record{TimeNanoseconds: earliest, Instance: "a/b", ID: "1", Status: "recieved"}
	told := r.Validate()
	for _, r.Status = range []Status{Triggered, Sent, Received, Processed, Receipt, Retransmitted, Failed, Connected, Disconnected, Subscribed, Refused, Period} {
		if err := r.Validate(); err != nil || told == nil || !strings.Contains(told.Error(), string(r.Status)) {
			t.Errorf("%s: %v; and %q does not name it", r.Status, err, told)
		}
	}
}
