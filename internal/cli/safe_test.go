package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/safetext"
)

// hostile sets a title, moves the cursor and turns text round.
const hostile = "\x1b]0;owned\x07\x1b[2Jx\u009b31m\u202e"

func TestNothingOfAFileReachesTheTerminalRaw(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	eel := file("a.eel", "0.0 nem:1 location gps 58.0,10.0,3.0\n0.0 nem:1 mood\x1b[2J"+" happy\n10.0 nem:1 location gps 58.1,10.0,3.0\n")
	yaml := file("a.yaml", "apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata: {name: \"a\\e[2J\"}\nspec: {\"b\\e[2J\": 1}\n")
	for _, args := range [][]string{
		{"scenario", "inspect", eel},
		{"validate", yaml},
		{"run", yaml},
		{"scenario", "inspect", "\x1b[2J.eel"},
	} {
		var out, errs bytes.Buffer
		Main("", append([]string{"vignette"}, args...), strings.NewReader(""), &out, &errs)
		// Readers of scenarios put a question mark in the place of a control character.
		shown := strings.ReplaceAll(out.String()+errs.String(), "?[2j", `\U001B[2J`)
		if strings.ContainsRune(shown, '\x1b') || !strings.Contains(strings.ToUpper(shown), `\U001B[2J`) {
			t.Errorf("vignette %q wrote %q", args, shown)
		}
	}
}

func TestResultsShowNoControlCharacters(t *testing.T) {
	entry := []runapi.Gap{{What: "app " + hostile, Node: hostile, Reason: "it said\r\n" + hostile}}
	text := resultsText(runapi.Results{Experiment: "a", Gaps: entry, Warnings: entry, Notes: entry,
		Publishers: []runapi.PublisherResult{{Name: hostile}}, Verdict: &runapi.Verdict{Context: []string{hostile}}})
	if text != safetext.Terminal(text) || strings.Count(text, `\u001b]0;owned\u0007`) < 8 {
		t.Errorf("the results are %q", text)
	}
}

func TestLogsAreRawOnlyWhenAsked(t *testing.T) {
	for raw, want := range map[bool]string{false: safetext.Terminal(hostile) + "\nend\n", true: hostile + "\nend\r\n"} {
		p := liveCluster()
		platform := newPlatform()
		platform.files["logs/hq/broker/stdout-1.log"] = hostile + "\nend\r\n"
		var out bytes.Buffer
		o := logsOptions{streams: []string{"stdout"}, tail: -1, raw: raw}
		if err := platform.cluster(t, p).logs(t.Context(), "hq/broker", o, newLogWriter(safetext.NewWriter(&out), &out)); err != nil || out.String() != want {
			t.Errorf("raw %v: error %v, output %q, want %q", raw, err, out.String(), want)
		}
	}
}

func TestFilesAndConsolesAreExact(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(safetext.NewWriter(&out))
	for _, w := range []struct{ write func() (int, error) }{
		{func() (int, error) { return contentWriter(cmd.OutOrStdout()).Write([]byte(hostile)) }},
		{func() (int, error) { return rawStreams(cmd).out.Write([]byte(hostile)) }},
	} {
		if _, err := w.write(); err != nil || out.String() != hostile {
			t.Errorf("error %v, output %q", err, out.String())
		}
		out.Reset()
	}
}

func TestCampaignsCSVHasNoFormulas(t *testing.T) {
	var out bytes.Buffer
	if err := writeCSV(&out, [][]string{{"=1+1", "-2", "@a"}}); err != nil || out.String() != "'=1+1,-2,'@a\n" {
		t.Errorf("error %v, CSV %q", err, out.String())
	}
}

func TestAPathThatIsNoneOfARunsIsRefusedHere(t *testing.T) {
	for _, path := range []string{"../../x", "/etc/passwd", "results/../../x", "results//x", ".", "results/"} {
		var errs bytes.Buffer
		code := Main("", []string{"vignette", "results", "quickstart", "--get", path}, strings.NewReader(""), &bytes.Buffer{}, &errs)
		if code != exitFailure || !strings.HasPrefix(errs.String(), "Error: --get "+path+": want the path of a file of the run, such as results/results.json") {
			t.Errorf("--get %s: code %d, %q", path, code, errs.String())
		}
		asked := false
		client := runclient.New("http://archive", &http.Client{Transport: roundTripper(func(*http.Request) { asked = true })}, runclient.NoToken)
		if _, err := client.File(t.Context(), "uid", path); err == nil || !strings.Contains(err.Error(), "and no empty name, . or ..") || asked {
			t.Errorf("File(%q): error %v, asked %v", path, err, asked)
		}
	}
}

type roundTripper func(*http.Request)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, http.ErrServerClosed
}
