package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestAFlagOfTheWrongTypeIsRefusedInPlainWords(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"scenario", "inspect", "a.csv", "--every", "5"}, "--every 5: want a time with its unit, such as 30s or 5m: see vignette scenario inspect --help"},
		{[]string{"scenario", "inspect", "a.csv", "--limit", "far"}, "--limit far: want a number, such as 2.5: see"},
		{[]string{"scenario", "inspect", "a.csv", "--limit", ""}, `--limit "": want a number`},
		{[]string{"ssh", "--port", "99999", "veh-1"}, "--port 99999: want a whole number from 0 to 65535: see vignette ssh --help"},
		{[]string{"results", "a", "--only", `x"y`}, `--only x"y: want words with commas between, and quotation marks only around a whole word: see`},
		{[]string{"results", "a", "--files", "--get", "x"}, "--files, --get exclude each other: give one of them"},
		{[]string{"scenario", "inspect", "--no-such"}, "unknown flag: --no-such: see vignette scenario inspect --help"},
	} {
		code, _, errs := vignette(c.arguments...)
		if code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("vignette %q: %d, %q: want %q", c.arguments, code, errs, c.want)
		}
		if strings.Contains(errs, "strconv") || strings.Contains(errs, "time:") || strings.Contains(errs, "[") {
			t.Errorf("in Go's words: %q", errs)
		}
	}
}

func TestEachTypeOfFlagHasPlainWordsForAWrongValue(t *testing.T) {
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); kind != "string" && kind != "stringArray" && flagWants[kind] == "" { // those two take anything
				t.Errorf("--%s is of type %s, for which flagWants has no words", f.Name, kind)
			}
		})
	})
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
