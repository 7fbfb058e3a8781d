package messagelog

import (
	"bytes"
	"strings"
	"testing"
)

func TestRecordsComeBackAsWritten(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	want := []Record{
		{TimeNanoseconds: 1, Instance: "nor/bft/1", Status: Sent, ID: "NOR-S001_1", Topic: "/NOR", Bytes: 240},
		{TimeNanoseconds: 2, Instance: "prt/all", Status: Received, ID: "NOR-S001_1"},
	}
	for _, r := range want {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
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
	}
	const want = `{"ts":1,"instance":"a/b","status":"received","id":"x"}` + "\n" + `{"ts":2,"instance":"a/b","status":"processed","id":"x"}` + "\n"
	if len(out) != 2 || out[0] != want || out[1] != want {
		t.Errorf("wrote %q; want twice %q", out, want)
	}
}

func TestBadLinesAreCountedAndSkipped(t *testing.T) {
	in := strings.Join([]string{
		`{"ts":1,"instance":"a/b","status":"sent","id":"x"}`,
		`not JSON`,
		`{"ts":0,"instance":"a/b","status":"sent","id":"x"}`,
		`{"ts":1,"instance":"","status":"sent","id":"x"}`,
		`{"ts":1,"instance":"a/b","status":"lost","id":"x"}`,
		``,
		`{"ts":2,"instance":"a/b","status":"processed","id":"x"}`,
		`{"ts":3,"instance":"a/b","sta`,
	}, "\n")
	good := 0
	bad, err := Read(strings.NewReader(in), func(Record) { good++ })
	if err != nil || good != 2 || bad != 5 {
		t.Fatalf("read %d good, %d bad, %v; want 2 good, 5 bad", good, bad, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"ts":1,"instance":"a/b","status":"sent","id":"x"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Read(bytes.NewReader(data), func(r Record) {
			if err := r.Validate(); err != nil {
				t.Errorf("an invalid record came through: %v", err)
			}
		})
	})
}
