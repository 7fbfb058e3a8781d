package configmaps

import (
	"slices"
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

func TestChangedContentsAreNamed(t *testing.T) {
	before := []runapi.PlannedConfigMap{{Name: "a", Key: "x", ResourceVersion: "1", SHA256: "1"}, {Name: "a", Key: "y", ResourceVersion: "1", SHA256: "2"}}
	now := []runapi.PlannedConfigMap{{Name: "a", Key: "x", ResourceVersion: "9", SHA256: "1"}}
	if got := Changed(before, now); !slices.Equal(got, []string{"key y of ConfigMap a"}) {
		t.Errorf("got %q; want key y only, which is gone", got)
	}
}
