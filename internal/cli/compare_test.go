package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
)

// comparing is a cluster whose server has runs of lan and satcom, and answers with what it was asked; or with a problem.
func comparing(t *testing.T, status int, problem string) *cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/compare" && status == http.StatusOK:
			_, _ = w.Write([]byte(r.URL.RawQuery))
		case r.URL.Path == "/v1/compare":
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(runapi.Problem{Error: problem})
		case r.URL.Query().Get("name") == "lan":
			_ = json.NewEncoder(w).Encode([]runapi.RunSummary{{UID: "1a-newest"}, {UID: "1b-older"}, {UID: "1b-oldest"}})
		case r.URL.Query().Get("name") == "satcom":
			_ = json.NewEncoder(w).Encode([]runapi.RunSummary{{UID: "5f0c"}})
		default:
			_, _ = w.Write([]byte("[]"))
		}
	}))
	t.Cleanup(server.Close)
	return &cluster{namespace: "team-nor", archive: runclient.New(server.URL, server.Client(), nil)}
}

func TestComparedRunsAreNamedByNameAndUID(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		o     compareOptions
		want  string
	}{
		"newest of each name":   {[]string{"satcom", "lan"}, compareOptions{output: "table"}, "format=text&run=5f0c&run=1a-newest"},
		"one name, two runs":    {[]string{"lan@1a", "lan@1b-older"}, compareOptions{output: "json", by: "run"}, "by=run&format=json&run=1a-newest&run=1b-older"},
		"UIDs after names":      {[]string{"satcom"}, compareOptions{output: "html", uids: []string{"x", "y"}}, "format=html&run=5f0c&run=x&run=y"},
		"no such name":          {[]string{"satcom", "nope"}, compareOptions{}, "the archive has no run of nope in namespace team-nor"},
		"UID of several":        {[]string{"satcom", "lan@1b"}, compareOptions{}, "lan@1b: 2 runs of lan in namespace team-nor have a UID with this beginning; want one of: 1a-newest, 1b-older, 1b-oldest"},
		"UID of none":           {[]string{"satcom", "lan@9"}, compareOptions{}, "lan@9: 0 runs of lan"},
		"UID of no name":        {[]string{"satcom", "nope@9"}, compareOptions{}, "the archive has no run of nope in namespace team-nor"},
		"the same run two ways": {[]string{"lan", "lan@1a"}, compareOptions{}, "lan@1a: run 1a-newest is there twice: NAME@UID chooses"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := comparing(t, http.StatusOK, "").compare(t.Context(), c.names, c.o, &out); err != nil {
				out.WriteString(err.Error())
			}
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("%s; want %s", out.String(), c.want)
			}
		})
	}
}

func TestReferenceFiguresGoWithTheirFilesName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "paper.csv")
	if err := os.WriteFile(file, []byte("run,metric,value\nlan,sent,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := compareOptions{output: "json", reference: referenceFile{path: file}}
	if err := o.reference.read(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := comparing(t, http.StatusOK, "").compare(t.Context(), []string{"satcom", "lan"}, o, &out)
	if want := "format=json&reference=run%2Cmetric%2Cvalue%0Alan%2Csent%2C3%0A&referenceName=paper.csv&run=5f0c&run=1a-newest"; err != nil || out.String() != want {
		t.Errorf("%s, %v; want %s", out.String(), err, want)
	}
}

func TestABadFileOfReferenceFiguresIsRefusedWithoutACluster(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "bad.csv"), []byte("run,metric,value\nlan,meanSecond,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "long.csv"), bytes.Repeat([]byte("\n"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"bad.csv":  `bad.csv, row 2, column metric: "meanSecond" is unknown: did you mean meanSeconds?`,
		"none.csv": "none.csv: there is no such file",
		"long.csv": "long.csv: it has more than 32768 bytes, which is the limit",
		"":         ": it cannot be read: want a CSV file",
	} {
		for _, command := range [][]string{{"compare", "lan", "satcom"}, {"campaign", "report", "links"}} {
			var out, errs bytes.Buffer
			code := Main("test", slices.Concat([]string{"vignette"}, command, []string{"--reference", filepath.Join(folder, name)}), strings.NewReader(""), &out, &errs)
			if code == 0 || !strings.Contains(errs.String(), want) {
				t.Errorf("%v %s: exit code %d, %s; want %s", command, name, code, errs.String(), want)
			}
		}
	}
}

func TestInvalidComparisonsAreRefusedWithoutACluster(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":      {nil, "needs at least two runs, as NAME, NAME@UID or --uid UID"},
		"one run":      {[]string{"lan"}, "needs at least two runs"},
		"a form":       {[]string{"lan", "satcom", "-o", "pdf"}, `--output "pdf": want table, json, csv, latex, html`},
		"a folder":     {[]string{"runs/lan", "satcom"}, "runs/lan is a folder: vignette compare takes runs in the archive; downloaded ones are compared by python3 -m vignette_analysis compare"},
		"a run's path": {[]string{"./lan", "satcom"}, "./lan is a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Main("test", append([]string{"vignette", "compare"}, c.args...), strings.NewReader(""), &out, &errs)
			if code == 0 || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d, %s; want %s", code, errs.String(), c.want)
			}
		})
	}
}

func TestTheServersErrorsOfAComparisonAreUnchanged(t *testing.T) {
	for status, problem := range map[int]string{
		http.StatusNotImplemented:      "this platform compares no runs: the chart's value server.analysis.enabled is false",
		http.StatusConflict:            "run team-nor/lan/1a has no results yet",
		http.StatusUnprocessableEntity: "by 'colour': no field of that name differs",
		http.StatusServiceUnavailable:  "the analysis beside the server cannot be reached",
	} {
		target := &target{platform: "vignette-system"}
		err := target.explainComparison(comparing(t, status, problem).compare(t.Context(), []string{"lan", "satcom"}, compareOptions{output: "table"}, &bytes.Buffer{}))
		if err == nil || err.Error() != problem {
			t.Errorf("%d: %v; want %q", status, err, problem)
		}
	}
	err := (&target{platform: "vignette-system"}).explainComparison(comparing(t, http.StatusForbidden, "no").compare(t.Context(), []string{"lan", "satcom"}, compareOptions{}, &bytes.Buffer{}))
	if err == nil || !strings.Contains(err.Error(), "needs the role vignette-viewer in the namespace") {
		t.Errorf("forbidden: %v; want the right that is needed", err)
	}
}
