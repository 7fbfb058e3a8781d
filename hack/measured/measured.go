// Command measured keeps the results of the studies: a small JSON file for each run or campaign, and two pages of tables from all of them.
//
//	vignette results NAME -o json > NAME.json
//	vignette campaign results NAME -o json > NAME.json
//	go run ./hack/measured NAME.json...
//
// Runs become docs/measurements/studies/NAME.json, in the form of the results API, and its README.md. Campaigns become files in the folder
// campaigns there, and its README.md. One with the name of an earlier one replaces it. Without files it writes only the pages.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func main() {
	if err := keep("docs/measurements/studies", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hack/measured:", err)
		os.Exit(1)
	}
}

func keep(dir string, files []string) error {
	if err := os.MkdirAll(filepath.Join(dir, "campaigns"), 0o755); err != nil { //nolint:gosec // public
		return err
	}
	for _, file := range files {
		if c, err := readCampaign(file); err == nil {
			if err := write(filepath.Join(dir, "campaigns", c.Campaign+".json"), c); err != nil {
				return err
			}
			continue
		}
		results, err := read(file)
		if err != nil {
			return err
		}
		shorten(results)
		if err := write(filepath.Join(dir, results.Experiment+".json"), results); err != nil {
			return err
		}
	}
	text, err := page(dir)
	if err != nil {
		return err
	}
	campaigns, err := campaignPage(filepath.Join(dir, "campaigns"))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "README.md"), []byte(text), 0o644), //nolint:gosec // public
		os.WriteFile(filepath.Join(dir, "campaigns", "README.md"), []byte(campaigns), 0o644)) //nolint:gosec // public
}

// write writes a value as JSON.
func write(file string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // public
}

func read(file string) (*runapi.Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	results := &runapi.Results{}
	if err := json.Unmarshal(text, results); err != nil || results.Experiment == "" || results.StartTime == nil {
		return nil, fmt.Errorf("%s: want what vignette results NAME -o json prints of an ended run (%v)", file, err)
	}
	if results.Phase == string(v1alpha1.PhaseFailed) {
		return nil, fmt.Errorf("%s: run %s failed: want the results of one that succeeded", file, results.Experiment)
	}
	return results, nil
}

// shorten drops what grows with the number of nodes, and moments of lateness: their bounds stay.
func shorten(r *runapi.Results) {
	r.Publishers, r.Clocks, r.Notes = nil, nil, nil
	if r.Verdict != nil {
		r.Verdict.Late, r.Verdict.Networks, r.Verdict.Context = nil, nil, nil
	}
}

const head = `# Full forms of the studies

Results of the [studies](../../../scenarios/README.md) in their full form, a row for each run. They are of one run each, on the machine of [the studies' page](../studies.md).
The files beside this page have the same figures and more, as ` + "`vignette results -o json`" + ` prints them, without what grows with the number of nodes.

[ ]: 95 % confidence interval. Kept up: whether the emulation's lateness stayed within the tolerances. Where not, figures may be off by as much as the cell says.
Delays are from sent to received; waiting before that is not in them.

**To repeat:** ` + "`vignette run FILE --watch`, `vignette results NAME -o json > NAME.json`, `go run ./hack/measured NAME.json`." + `
`

// page returns the page of all files of a directory. Its tables stand side by side for the variants of a study.
func page(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", err
	}
	studies := map[string][]*runapi.Results{}
	for _, file := range files {
		results, err := read(file)
		if err != nil {
			return "", err
		}
		study, _, _ := strings.Cut(results.Experiment, "-")
		studies[study] = append(studies[study], results)
	}
	var b strings.Builder
	b.WriteString(head)
	for _, study := range slices.Sorted(maps.Keys(studies)) {
		runs := studies[study]
		fmt.Fprintf(&b, "\n## %s\n\n%s", strings.ToUpper(study[:1])+study[1:], table(runs))
		b.WriteString(burstTables(runs))
	}
	return b.String(), nil
}

// column of a table of runs.
type column struct {
	head string
	cell func(*runapi.Results) string
}

var columns = []column{
	{"run", func(r *runapi.Results) string { return fmt.Sprintf("[%[1]s](%[1]s.json)", r.Experiment) }},
	{"messages", func(r *runapi.Results) string { triggered, _ := r.Messages.Counted(); return count(triggered) }},
	{"never sent", neverSent},
	{"delivered", delivered},
	{"% [ ]", share},
	{"median [ ]", func(r *runapi.Results) string { return middle(r.HeadlineGroup(), true) }},
	{"mean [ ]", func(r *runapi.Results) string { return middle(r.HeadlineGroup(), false) }},
	{"p95", p95},
	{"receipts", receipts},
	{"on the wire", onTheWire},
	{"kept up", keptUp},
	{"date", func(r *runapi.Results) string { return r.StartTime.UTC().Format("2006-01-02") }},
}

func table(runs []*runapi.Results) string {
	slices.SortFunc(runs, func(a, b *runapi.Results) int { return cmp.Compare(a.Experiment, b.Experiment) })
	rows := make([][]string, len(runs)+1)
	for _, c := range columns {
		rows[0] = append(rows[0], c.head)
		for i, run := range runs {
			rows[i+1] = append(rows[i+1], c.cell(run))
		}
	}
	return markdownTable(rows)
}

func neverSent(r *runapi.Results) string {
	if n := r.HeadlineGroup().Messages.NeverSent; n != nil && *n > 0 {
		return count(*n)
	}
	return ""
}

func delivered(r *runapi.Results) string {
	m := r.HeadlineGroup().Messages
	_, offered := m.Counted()
	text := count(m.Received) + " of " + count(offered)
	if m.Duplicates > 0 {
		text += ", duplicates: " + count(m.Duplicates)
	}
	return text
}

func share(r *runapi.Results) string {
	group := r.HeadlineGroup()
	if group.Messages.DeliveredPercent == nil {
		return ""
	}
	text := percent(*group.Messages.DeliveredPercent)
	if c := group.Confidence; c != nil && c.DeliveredPercent != nil {
		text += fmt.Sprintf(" [%s, %s]", percent(c.DeliveredPercent.Low), percent(c.DeliveredPercent.High))
	}
	return text
}

// middle returns the median, or the mean, with its interval.
func middle(group runapi.GroupResult, median bool) string {
	if group.DelaySeconds == nil {
		return ""
	}
	value, c := &group.DelaySeconds.Median, group.Confidence
	if !median {
		value = group.DelaySeconds.Mean
	}
	if value == nil {
		return ""
	}
	text := seconds(*value)
	if c == nil {
		return text
	}
	interval := c.MedianSeconds
	if !median {
		interval = c.MeanSeconds
	}
	if interval != nil {
		text += fmt.Sprintf(" [%s, %s]", seconds(interval.Low), seconds(interval.High))
	}
	return text
}

func p95(r *runapi.Results) string {
	if q := r.HeadlineGroup().DelaySeconds; q != nil && q.P95 != nil {
		return seconds(*q.P95)
	}
	return ""
}

func receipts(r *runapi.Results) string {
	if r.Requests == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d", r.Requests.Receipts, r.Requests.Triggered)
	if q := r.Requests.ResponseSeconds; q != nil {
		text += ", median " + seconds(q.Median)
	}
	return text
}

func onTheWire(r *runapi.Results) string {
	texts := make([]string, len(r.MessageSizes))
	for i, size := range r.MessageSizes {
		texts[i] = fmt.Sprintf("%s %.0f B", size.Protocol, size.MedianBytes)
	}
	return strings.Join(texts, ", ")
}

func keptUp(r *runapi.Results) string {
	if r.Verdict == nil {
		return verdict(nil, "")
	}
	return verdict(&r.Verdict.KeptUp, r.HeadlineBounds().String())
}

// verdict words whether the emulation kept up, nil if that is unknown, and by how much figures may be off.
func verdict(keptUp *bool, offBy string) string {
	switch {
	case keptUp == nil:
		return "not judged"
	case *keptUp:
		return "yes"
	}
	return strings.TrimSuffix("no: off by up to "+offBy, ": off by up to ")
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// seconds with three significant digits.
func seconds(s float64) string {
	if s < 1 {
		return strconv.FormatFloat(1000*s, 'g', 3, 64) + " ms"
	}
	if s >= 1000 { // 'g' would have an exponent
		return strconv.FormatFloat(s, 'f', 0, 64) + " s"
	}
	return strconv.FormatFloat(s, 'g', 3, 64) + " s"
}
