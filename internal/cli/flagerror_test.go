package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFlagOfTheWrongTypeIsRefusedInPlainWords(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"scenario", "inspect", "a.csv", "--every", "5"}, "--every 5: want a time with its unit, such as 30s or 5m: see vignette scenario inspect --help"},
		{[]string{"scenario", "inspect", "a.csv", "--limit", "far"}, "--limit far: want a number, such as 2.5: see"},
		{[]string{"scenario", "inspect", "a.csv", "--limit", ""}, `--limit "": want a number`},
		{[]string{"scenario", "inspect", "--no-such"}, "unknown flag: --no-such: see vignette scenario inspect --help"},
	} {
		code, _, errs := vignette(c.arguments...)
		if code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("vignette %q: %d, %q: want %q", c.arguments, code, errs, c.want)
		}
		if strings.Contains(errs, "strconv") || strings.Contains(errs, "time:") {
			t.Errorf("in Go's words: %q", errs)
		}
	}
}

func TestAFileThatIsNoKubeconfigIsRefusedInPlainWords(t *testing.T) {
	for _, text := range []string{"words", "kind: [", "kind: Experiment\napiVersion: vignette.dev/v1alpha1\n"} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := vignette("status", "--kubeconfig", file)
		if code == 0 || !strings.Contains(errs, file+" is not a kubeconfig: want") || strings.Contains(errs, "no cluster is configured") {
			t.Errorf("%q: %d, %q: want it refused as no kubeconfig", text, code, errs)
		}
	}
}
