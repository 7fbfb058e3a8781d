package dataplane

import (
	"os/exec"
	"strings"
	"testing"
)

func TestTheDataPlaneKnowsNoCluster(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("list what the package needs: %v", err)
	}
	for name := range strings.Lines(string(out)) {
		for _, foreign := range []string{"k8s.io/", "sigs.k8s.io/", "github.com/prometheus/", "vignette.dev/vignette/operators/"} {
			if strings.HasPrefix(name, foreign) {
				t.Errorf("the data plane needs %s", strings.TrimSpace(name))
			}
		}
	}
}
