package tutorial

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "# A page\n\n<!-- not run by the test: the cluster is there -->\n```sh\nmake install\n```\n\nSave this as `a.yaml`, and\nread it:\n\n```yaml\na: 1\n```\n\n" +
	"Then\n\n<!-- exit code 1 -->\n```sh\nvignette validate a.yaml\n```\n\nwhich says:\n\n```text\na.yaml:1: no\n```\n"

func TestTheStepsOfAPageAreItsCommandsAndFiles(t *testing.T) {
	steps, err := Steps(page)
	want := []Step{
		{Line: 4, Text: "make install\n", NotRun: "the cluster is there"},
		{Line: 11, File: "a.yaml", Text: "a: 1\n"},
		{Line: 18, Text: "vignette validate a.yaml\n", Shown: "a.yaml:1: no\n", ExitCode: 1},
	}
	if diff := cmp.Diff(want, steps); diff != "" || err != nil {
		t.Errorf("%v, (-want +got)\n%s", err, diff)
	}
}

func TestAPageWhoseBlocksTellNoStepsIsRefused(t *testing.T) {
	for broken, want := range map[string]string{
		"```yaml\na: 1\n```\n":                                 "line 1: a block of language \"yaml\"",
		"```text\nprinted\n```\n":                              "line 1: output without commands",
		"```sh\nls\n```\n\n```text\n```\n":                     "line 5: no output is shown",
		"```sh\nls\n```\n\n```text\na\n```\n```text\nb\n```\n": "line 8: output without commands",
	} {
		if _, err := Steps(broken); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", broken, err, want)
		}
	}
}

func TestOutputIsComparedWithoutWhatDiffersBetweenRuns(t *testing.T) {
	const printed = "first in namespace n: Succeeded, started 2026-11-20 12:00:00Z, 65.1 s\nrun 0b6fd5cc-5c1e-4f5e-9d43-6a0f3c5f6d11\n\nall   18   18   100.00   104 ms   1.02 s\nGaps: none\n"
	for shown, differs := range map[string]bool{
		printed: false,
		"first in namespace n: Succeeded, started 2027-01-02 03:04:05Z, 65.0 s\nrun 1c5e0b7e-65a7-4f0e-9d5f-2f4b8c1d3a90\nall 18 18 99.10 1.2 s 98 ms\nGaps: none\n": false,
		"…\nall 18 18 100.00 104 ms 1.02 s\n…\n": false,
		"first … Succeeded…\n…\nGaps: none\n":    false,
		"…\nall 17 18 100.00 104 ms 1.02 s\n…\n": true,
		"Gaps: none\n":                        true,
		"…\nall 18 18 100.00 104 ms 1.02 s\n": true,
		"…\nGaps: none\n…\nrun …\n…\n":        true,
	} {
		if err := Differs(Step{Shown: shown}, printed); (err != nil) != differs {
			t.Errorf("%q: %v; want that it differs: %v", shown, err, differs)
		}
	}
}

func TestCountsMayDifferWhereThePageSaysSo(t *testing.T) {
	step := Step{Shown: "lossy *   18   17   94.44\nEmulation kept up: yes\n", Varies: true}
	if err := Differs(step, "lossy   18   18   100.00\nEmulation kept up: NO, so losses are of the machine\n"); err != nil {
		t.Error(err)
	}
	if err := Differs(step, "other   18   18   100.00\nEmulation kept up: yes\n"); err == nil {
		t.Error("another label was taken for the shown one")
	}
}

func TestAnExcerptIsMadeAnewFromWhatWasPrinted(t *testing.T) {
	const printed = "first Running\nall 18 18\nradio 17 18\nGaps: none\n"
	for shown, want := range map[string]string{
		"":                            printed,
		"all 3 4\n":                   printed,
		"…\nall 3 4\nGaps: 7\n":       "…\nall 18 18\nGaps: none\n",
		"…\nall 3 4\n…\nlost: 3\n…\n": "…\nall 18 18\n…\nlost: 3\n…\n",
	} {
		if got := Excerpt(shown, printed); got != want {
			t.Errorf("of %q: %q; want %q", shown, got, want)
		}
	}
}
