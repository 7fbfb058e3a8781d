package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/validate"
)

func TestValidatePrintsJSONOfFilesNamedAsForKubectl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.yaml")
	for text, valid := range map[string]bool{"{link: {}}": true, "{link: {}, lnk: {}}": false} {
		if err := os.WriteFile(file, []byte("apiVersion: vignette.dev/v1alpha1\nkind: Waveform\nmetadata: {name: w}\nspec: "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout bytes.Buffer
		code := Main("test", []string{"vignette", "validate", "-f", file, "-o", "json"}, strings.NewReader(""), &stdout, &stdout)
		out := stdout.String()
		var report struct {
			Valid    bool
			Objects  []string
			Findings []validate.Finding
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		if report.Valid != valid || (code == 0) != valid || len(report.Objects) != 1 || (len(report.Findings) == 0) != valid {
			t.Errorf("code %d, %+v; want valid: %v", code, report, valid)
		}
		if !valid && (report.Findings[0].Line != 4 || report.Findings[0].Path != "spec.lnk" || report.Findings[0].File != file) {
			t.Errorf("finding %+v; want spec.lnk in line 4", report.Findings[0])
		}
	}
}

func TestAValidationThatTakesLongSaysHowFarItIs(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	checked := tellProgress(&out, func() time.Time { return now })
	for i := range 10 {
		now = now.Add(4 * time.Second)
		checked(i+1, 10)
	}
	if want := "checked 3 of 10 objects\nchecked 6 of 10 objects\nchecked 9 of 10 objects\n"; out.String() != want {
		t.Errorf("%q; want %q", out.String(), want)
	}
}
