package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

const kept = "../../docs/measurements/studies"

func TestThePageIsThatOfTheKeptResults(t *testing.T) {
	want, err := page(kept)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(kept, "README.md")); err != nil || string(got) != want {
		t.Errorf("%s/README.md is not of its files (%v): go run ./hack/measured", kept, err)
	}
	campaigns := filepath.Join(kept, "campaigns")
	if want, err = campaignPage(campaigns); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(campaigns, "README.md")); err != nil || string(got) != want {
		t.Errorf("%s/README.md is not of its files (%v): go run ./hack/measured", campaigns, err)
	}
}

func TestAKeptFileLeavesOutWhatGrowsWithTheNodes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "printed.json")
	printed := `{"schemaVersion": 1, "experiment": "e9-new", "startTime": "2026-01-02T03:04:05Z", "headline": "all", "messages": {"sent": 3},
		"delaySeconds": {"min": 0.1, "p25": 0.1, "median": 0.25, "p75": 0.1, "max": 0.5}, "publishers": [{"name": "many"}],
		"groups": [{"name": "all", "messages": {"triggered": 4, "sent": 3, "offered": 4, "deliveredPercent": 50, "received": 2, "neverSent": 1, "duplicates": 1}, "delaySeconds": {"median": 0.25}, "bounds": {"delaySeconds": {"median": {"low": 0.2, "high": 0.3}}}}],
		"verdict": {"keptUp": false, "late": [{"node": "a"}], "bounds": {"delaySeconds": {"median": {"low": 0.2, "high": 0.3}}}}}`
	if err := os.WriteFile(file, []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keep(filepath.Join(dir, "kept"), []string{file}); err != nil {
		t.Fatal(err)
	}
	results, err := read(filepath.Join(dir, "kept", "e9-new.json"))
	if err != nil || results.Publishers != nil || results.Verdict.Late != nil || results.Verdict.Bounds == nil {
		t.Errorf("%+v, %v; want it without publishers and moments, with bounds", results, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "kept", "README.md"))
	row := "| [e9-new](e9-new.json) | 3 | 1 | 2 of 4, duplicates: 1 | 50.0 | 250 ms | no: off by up to 50 ms of the median | 2026-01-02 |"
	if err != nil || !strings.Contains(string(text), row) {
		t.Errorf("%v, %s\nwant\n%s", err, text, row)
	}
}

func TestTheTimesOfBurstsAreATableOfProtocols(t *testing.T) {
	half := 0.5
	got := burstTables([]*runapi.Results{{Experiment: "none"}, {Experiment: "e7-pairs", Bursts: []runapi.BurstResult{
		{PublisherProtocol: "xmpp", SubscriberProtocol: "mqtt", Messages: 100, Received: 99},
		{PublisherProtocol: "amqp", SubscriberProtocol: "mqtt", Messages: 100, Received: 100, Seconds: &half},
		{PublisherProtocol: "amqp", SubscriberProtocol: "xmpp", Messages: 100, Received: 100, Seconds: &half},
	}}})
	want := `
Bursts of e7-pairs, from a publisher's start to the arrival of its last message:

| from \ to | mqtt | xmpp |
|---|---|---|
| amqp | 500 ms | 500 ms |
| xmpp | 99 of 100 | - |
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestOnlyResultsOfEndedRunsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	for _, text := range []string{"", "{}", `{"experiment": "e1"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := read(file); err == nil || !strings.Contains(err.Error(), "want what vignette results NAME -o json prints") {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestResultsOfAFailedRunAreNotKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"experiment": "e1", "phase": "Failed", "startTime": "2026-01-02T03:04:05Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := read(file); err == nil || !strings.Contains(err.Error(), "run e1 failed") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestACampaignBecomesATableOfItsPoints(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "printed.json")
	printed := `{"schemaVersion": 2, "campaign": "tls-short", "namespace": "team", "axes": ["tls", "qos"], "points": [], "runs": [
		{"experiment": "a", "levels": {"tls": "on", "qos": "1"}, "seed": 7, "phase": "Completed", "messages": {"sent": 4, "offered": 4, "received": 3}, "deliveredPercent": 75,
		 "medianDelaySeconds": 0.25, "meanDelaySeconds": 1.5, "gaps": 1, "keptUp": false, "offByAtMost": "2 ms of the median"},
		{"experiment": "b", "levels": {"tls": "off", "qos": "1"}, "seed": 8, "phase": "Failed", "messages": null},
		{"experiment": "c", "levels": {"tls": "off", "qos": "2"}, "seed": 8, "phase": "Pending", "messages": null}]}`
	if err := os.WriteFile(file, []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keep(filepath.Join(dir, "kept"), []string{file}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "kept", "campaigns", "README.md"))
	table := `## tls-short

2 of 3 points have been run.

| tls | qos | delivered | % | median | mean | gaps | kept up |
|---|---|---|---|---|---|---|---|
| on | 1 | 3 of 4 | 75.0 | 250 ms | 1.5 s | 1 | no: off by up to 2 ms of the median |
| off | 1 | Failed | - | - | - | - | - |
`
	if err != nil || !strings.HasSuffix(string(text), table) {
		t.Errorf("%v, %s\nwant\n%s", err, text, table)
	}
}

func TestALargeCampaignWithRepeatsHasARowForEachRun(t *testing.T) {
	dir := t.TempDir()
	c := &campaign{Campaign: "many", Axes: []string{"tls", "qos"}}
	for i := range mostRows + 1 {
		c.Runs = append(c.Runs, run{Levels: map[string]string{"tls": "on", "qos": "1"}, Repeat: i + 1, Phase: "Failed"})
	}
	if err := write(filepath.Join(dir, "many.json"), c); err != nil {
		t.Fatal(err)
	}
	text, err := campaignPage(dir)
	if err != nil || !strings.Contains(text, "| on | 1 | 1 | Failed |") || !strings.Contains(text, "| on | 1 | 25 | Failed |") {
		t.Errorf("%v\n%s\nwant a row for each repeat", err, text)
	}
}

func TestASingleLossStaysVisible(t *testing.T) {
	for value, want := range map[float64]string{0: "0.0", 0.01: "0.1", 62.5: "62.5", 99.97: "99.9", 100: "100.0"} {
		if got := percent(value); got != want {
			t.Errorf("%g %% is %q, want %q", value, got, want)
		}
	}
}

func TestALargeCampaignIsAGridOfItsFirstAxis(t *testing.T) {
	c := &campaign{Campaign: "e5", Axes: []string{"network", "way", "link"}}
	half, all, kept := 0.5, 100.0, true
	for _, way := range []string{"direct", "proxy"} {
		for _, network := range []string{"narrow", "wide"} {
			r := run{Levels: map[string]string{"network": network, "way": way, "link": "cut"}, Phase: "Succeeded"}
			if way == "direct" || network == "wide" {
				r.Messages = &messages{Sent: 1, Offered: 1, Received: 1}
			} else {
				r.Phase = "Failed"
			}
			r.DeliveredPercent, r.MedianDelaySeconds, r.KeptUp = &all, &half, &kept
			c.Runs = append(c.Runs, r)
		}
	}
	late := false
	c.Runs[1].KeptUp = &late
	c.Runs[3].ReceiptPercent, c.Runs[3].MeanResponseSeconds = &half, &all
	want := `| way | link | narrow | wide |
|---|---|---|---|
| direct | cut | 100.0 %, 500 ms | 100.0 %, 500 ms * |
| proxy | cut | Failed | 0.5 %, 100 s |
`
	if got := c.grid(); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
