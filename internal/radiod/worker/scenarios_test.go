package worker

import (
	"path/filepath"
	"testing"

	"vignette.dev/vignette/internal/radiod/radiodtest"
)

func TestScenariosThatNoNetworkNeedsAreRemoved(t *testing.T) {
	b := newPhysicalBed(t, 2, radiodtest.RFPipe())
	b.play(everybodyNear(t))
	b.begin(t)
	b.ready(t)
	other := b.object.DeepCopy()
	other.UID, other.Name = "other", "other"
	other.Spec.Members = nil
	set(t, b.Manager, other)
	files := func() int {
		found, _ := filepath.Glob(filepath.Join(b.directory, "scenarios", "*"))
		return len(found)
	}
	if err := b.RemoveNetwork(string(b.object.UID)); err != nil || files() != 1 {
		t.Errorf("%v, %d files; want the scenario kept for the other network", err, files())
	}
	if err := b.RemoveNetwork("other"); err != nil || files() != 0 {
		t.Errorf("%v, %d files; want none", err, files())
	}
}
