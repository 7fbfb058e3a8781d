package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	campaignGuide = "../../docs/how-to/run-campaigns.md"
	watchGuide    = "../../docs/how-to/watch-live.md"
	jsonReference = "../../docs/reference/comparison.md"
)

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheGuidesShowWhatIsPrinted(t *testing.T) {
	for guide, name := range map[string]string{campaignGuide: "campaign-results.txt", watchGuide: "watch-80-columns.txt"} {
		if block := "```\n" + readText(t, "testdata/"+name) + "```\n"; !strings.Contains(readText(t, guide), block) {
			t.Errorf("%s does not have what is printed, %s:\n%s", guide, name, block)
		}
	}
}

// guideTemplate takes the place of what the guide's campaign leaves out.
const guideTemplate = `
      duration: 75s
      drain: {max: 30s, quietFor: 5s}
      networks:
      - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
      apps:
      - {name: hub, mosquitto: {}}
      - {name: bft, publisher: {protocol: mqtt, to: hub, period: 2s}, subscriber: {protocol: mqtt, to: hub, topics: ["#"]}}
      nodes:
      - {name: nor, networks: [wan], apps: [hub, bft]}
      - {name: prt, networks: [wan], apps: [bft]}
      timeline:
      - {at: 5s, start: [bft]}
      - {at: 65s, stop: [bft]}
`

func TestTheGuidesCampaignIsJudgedAsTheGuideSays(t *testing.T) {
	guide := readText(t, campaignGuide)
	_, campaign, _ := strings.Cut(guide, "```yaml\n")
	campaign, _, _ = strings.Cut(campaign, "```\n")
	campaign = regexp.MustCompile(`(?m)^    spec: ….*\n`).ReplaceAllLiteralString(campaign, "    spec:"+guideTemplate)
	t.Chdir(t.TempDir())
	validated := func(text string) string {
		if err := os.WriteFile("links.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		_ = Main("test", []string{"vignette", "validate", "links.yaml"}, strings.NewReader(""), &out, &out)
		return out.String()
	}
	good, bad := validated(campaign), validated(strings.Replace(campaign, "value: 500ms", "value: 0s", 1))
	if block := "```\n" + bad + good + "```\n"; !strings.Contains(guide, block) {
		t.Errorf("%s does not have what is printed of its campaign with a period of 0s, and as it is:\n%s", campaignGuide, block)
	}
}

func TestTheReferenceNamesTheFieldsOfACampaignsJSON(t *testing.T) {
	_, form, _ := strings.Cut(readText(t, jsonReference), "## JSON of a campaign")
	_, form, _ = strings.Cut(form, "```\n")
	form, _, _ = strings.Cut(form, "```")
	var results any
	if err := json.Unmarshal([]byte(readText(t, "testdata/campaign-results.json")), &results); err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	var collect func(any)
	collect = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				collect(item)
			}
		case map[string]any:
			for name, item := range v {
				fields[name] = true
				if name != "levels" { // whose fields are axes
					collect(item)
				}
			}
		}
	}
	collect(results)
	named := slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(`\w+`).FindAllString(form, -1))))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)), named); diff != "" {
		t.Errorf("%s names other fields (-printed +named):\n%s", jsonReference, diff)
	}
}
