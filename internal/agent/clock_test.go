package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

func TestTheStateOfANodesClockIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock.json")
	if got := readClock(path); got != nil {
		t.Errorf("%+v without a file; want nothing", got)
	}
	want := runapi.AgentClock{OffsetSeconds: -0.002, UncertaintySeconds: 0.001, SetSeconds: 300, Measurements: 4, MeasuredNanoseconds: 5}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readClock(path); got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readClock(path); got != nil {
		t.Errorf("%+v of half a file; want nothing", got)
	}
}
