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
