package reference

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// sharedCase is a file, and what it means or what is wrong with it, in both readers.
type sharedCase struct {
	Name    string   `json:"name"`
	Text    string   `json:"text"`
	Runs    []string `json:"runs"`
	Figures []Figure `json:"figures"`
	Refused []string `json:"refused"`
}

func TestFilesAreReadAsTheAnalysisReadsThem(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []sharedCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			figures, err := Parse("paper.csv", []byte(c.Text), c.Runs)
			if len(c.Refused) == 0 {
				if err != nil || !slices.Equal(figures, c.Figures) {
					t.Errorf("%+v, %v; want %+v", figures, err, c.Figures)
				}
				return
			}
			if err == nil || err.Error() != strings.Join(c.Refused, "; ") {
				t.Errorf("%v\nwant %s", err, strings.Join(c.Refused, "; "))
			}
		})
	}
}

func TestTheMetricsAreThoseOfTheAnalysis(t *testing.T) {
	text, err := os.ReadFile("testdata/metrics.txt")
	if err != nil || strings.Join(metricNames, "\n")+"\n" != string(text) {
		t.Errorf("metrics %v, %v; want those of testdata/metrics.txt", metricNames, err)
	}
}

func TestAFileThatIsTooLargeOrNoTextIsRefused(t *testing.T) {
	const row = "a,radio,medianSeconds,1,\n"
	for name, c := range map[string]struct{ text, want string }{
		"bytes":   {"run,group,metric,value,note\n" + strings.Repeat(row, MaxBytes/len(row)+1), "paper.csv has 32803 bytes: want 32768 at most"},
		"rows":    {"run,metric,value\n" + manyRows(), "paper.csv, row 502: want 500 figures at most"},
		"Latin-1": {"run,metric,value,note\na,sent,1,caf\xe9\n", "paper.csv is no text in UTF-8: save it as CSV in UTF-8"},
	} {
		if _, err := Parse("paper.csv", []byte(c.text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
}

func TestAKeyOfAConfigMapIsNamedWhereThereAreSeveral(t *testing.T) {
	text := []byte("run,metric,value\nnear,sent,3\n")
	for name, c := range map[string]struct {
		key      string
		contents map[string][]byte
		want     string
	}{
		"the only one":     {"", map[string][]byte{"a.csv": text}, ""},
		"one of several":   {"a.csv", map[string][]byte{"a.csv": text, "b.csv": nil}, ""},
		"none of several":  {"", map[string][]byte{"a.csv": text, "b.csv": nil}, "ConfigMap paper has keys a.csv, b.csv: name one in key"},
		"one that lacks":   {"c.csv", map[string][]byte{"a.csv": text}, "ConfigMap paper has no key c.csv: did you mean a.csv? want one of a.csv"},
		"an empty object":  {"", nil, "ConfigMap paper is empty: want a key with a CSV file"},
		"an unknown point": {"", map[string][]byte{"a.csv": []byte("run,metric,value\nnera,sent,3\n")}, `ConfigMap paper, key a.csv, row 2, column run: "nera" is unknown: did you mean near? want one of near, far`},
	} {
		figures, err := OfConfigMap("paper", c.key, c.contents, []string{"near", "far"})
		if c.want == "" && (err != nil || len(figures) != 1) || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v, %v; want %s", name, figures, err, c.want)
		}
	}
}

func manyRows() string {
	var text strings.Builder
	for i := range MaxRows + 1 {
		text.WriteString("r" + strings.Repeat("x", i%40) + string(rune('a'+i/40)) + ",sent,1\n")
	}
	return text.String()
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("run,group,metric,value,note\na,radio,medianSeconds,0.5,\"a, b\"\n"))
	f.Add([]byte("run;group\n\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		figures, err := Parse("f", text, nil)
		if err == nil && len(figures) == 0 {
			t.Error("a file without figures was taken")
		}
	})
}
