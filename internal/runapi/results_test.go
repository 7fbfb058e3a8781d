package runapi

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// The fixture is made by the analysis: hack/python -m pytest analysis --update.
const fixture = "testdata/results.json"

func TestProgramsReadWhatTheAnalysisWrites(t *testing.T) {
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var results Results
	if err := decoder.Decode(&results); err != nil {
		t.Fatalf("%s: %v", fixture, err)
	}
	again, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := generic(t, again), generic(t, text); !reflect.DeepEqual(got, want) {
		t.Fatalf("a field is lost on the way through Go:\n got %v\nwant %v", got, want)
	}
	if results.SchemaVersion != ResultsVersion || results.Messages.Sent != 5 || results.Verdict == nil || len(results.Gaps) == 0 {
		t.Fatalf("results %+v: want 5 sent messages, a verdict and gaps", results)
	}
}

func generic(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheBoundsOfRunsAreTheWorstOfEachFigure(t *testing.T) {
	for _, c := range []struct {
		runs []string
		want string
	}{
		{[]string{"0.3 ms of the median, 12 ms of p95, 0.02 points of delivered", "4.2 ms of the median, 1.5 ms of p95, 0.4 points of delivered"},
			"4.2 ms of the median, 12 ms of p95, 0.4 points of delivered"},
		{[]string{"0.02 points of delivered", "7760 ms of the median, 0 points of delivered"}, "0.02 points of delivered, 7760 ms of the median"},
		{[]string{"0.3 ms of the median", ""}, ""},
		{nil, ""},
	} {
		if got := WorstBounds(c.runs); got != c.want {
			t.Errorf("of %q: %q, want %q", c.runs, got, c.want)
		}
	}
}
