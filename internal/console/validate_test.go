package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/validate"
)

const smallExperiment = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: small}
spec:
  duration: 1m
  networks:
  - {name: wan, waveform: WAVEFORM, subnet: 198.18.9.0/24}
  apps:
  - {name: broker, mosquitto: {}}
  nodes:
  - {name: hq, networks: [wan], apps: [broker]}
  - {name: veh, count: 3, networks: [wan]}
`

// namespaceObjects is an API server whose namespace has a quota and whose cluster has a waveform.
func namespaceObjects(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/apis/vignette.dev/v1alpha1/waveforms":
		writeText(w, "application/json", `{"apiVersion":"vignette.dev/v1alpha1","kind":"WaveformList","items":[{"apiVersion":"vignette.dev/v1alpha1","kind":"Waveform","metadata":{"name":"of-the-lab"},"spec":{"link":{"rate":"64kbit"}}}]}`)
	case "/api/v1/namespaces/team-nor/resourcequotas":
		writeText(w, "application/json", `{"items":[{"spec":{},"status":{"hard":{"pods":"10","requests.cpu":"2"},"used":{"pods":"7","requests.cpu":"500m"}}},
			{"spec":{},"status":{"hard":{"count/pods":"5"},"used":{"count/pods":"1"}}},
			{"spec":{"scopes":["Terminating"]},"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}}]}`)
	default:
		writeText(w, "application/json", `{"items":[]}`)
	}
}

func judged(t *testing.T, s *site, query, text string) (answer Judgement) {
	t.Helper()
	got := s.post("/console/v1/validate"+query, text)
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
		t.Fatalf("%v in %s", err, got.body)
	}
	return answer
}

// last finding of an answer.
func last(answer Judgement) validate.Finding { return answer.Findings[len(answer.Findings)-1] }

func TestAnErrorIsToldWithItsLineAndField(t *testing.T) {
	s := startLocal(t, namespaceObjects).logIn()
	answer := judged(t, s, "?namespace=team-nor", strings.Replace(smallExperiment, "count: 3", "cuont: 3", 1))
	if answer.Valid || len(answer.Findings) == 0 || last(answer).Line != 12 || last(answer).Path != "spec.nodes[1].cuont" || len(answer.Preview.Experiments) != 0 {
		t.Errorf("%+v", answer)
	}
}

func TestWhatTheNamespaceHasIsNotMissed(t *testing.T) {
	s := startLocal(t, namespaceObjects).logIn()
	for query, wants := range map[string]bool{"?namespace=team-nor": false, "": true} {
		answer := judged(t, s, query, strings.Replace(smallExperiment, "WAVEFORM", "of-the-lab", 1))
		if !answer.Valid || (len(answer.Findings) > 0) != wants {
			t.Errorf("%q: %+v; want a warning: %v", query, answer.Summary, wants)
		}
	}
	answer := judged(t, s, "?namespace=team-nor", strings.Replace(smallExperiment, "WAVEFORM", "of-another-lab", 1))
	if len(answer.Findings) == 0 || !strings.Contains(answer.Findings[0].Message, "of-another-lab is not in the library") {
		t.Errorf("an unknown waveform: %+v", answer.Summary)
	}
}

func TestThePreviewSaysWhatAnExperimentTakesOfTheQuota(t *testing.T) {
	s := startLocal(t, namespaceObjects).logIn()
	text := strings.Replace(smallExperiment, "WAVEFORM", "of-the-lab", 1)
	made := judged(t, s, "?namespace=team-nor", text).Preview
	if len(made.Experiments) != 1 || made.QuotaLeft == nil || *made.QuotaLeft.Pods != 3 || *made.QuotaLeft.CPU != 1.5 || made.QuotaLeft.MemoryBytes != nil {
		t.Fatalf("%+v; want one experiment, and 3 pods and 1.5 cores left", made)
	}
	small := made.Experiments[0]
	if small.Name != "small" || small.Nodes != 4 || small.CPU <= 0 || small.MemoryBytes <= 0 || small.DurationSeconds == nil || *small.DurationSeconds != 60 || *small.FitsQuota {
		t.Errorf("%+v; want 4 nodes for 60 s, too many for the quota", small)
	}
	fewer := judged(t, s, "?namespace=team-nor", strings.Replace(text, "count: 3", "count: 2", 1)).Preview.Experiments[0]
	if !*fewer.FitsQuota || fewer.CPU >= small.CPU {
		t.Errorf("%+v; want it to fit", fewer)
	}
	live := judged(t, s, "", strings.Replace(text, "  duration: 1m\n", "", 1)).Preview
	if live.QuotaLeft != nil || len(live.Experiments) != 1 || live.Experiments[0].DurationSeconds != nil || live.Experiments[0].FitsQuota != nil {
		t.Errorf("a live cluster, of no namespace: %+v", live)
	}
}

func TestAValidationIsBoundedAndOfARealNamespace(t *testing.T) {
	s := startLocal(t, namespaceObjects).logIn()
	if answer := s.post("/console/v1/validate", strings.Repeat("#", maxObjectsBytes+1)); answer.status != http.StatusRequestEntityTooLarge || !strings.Contains(answer.problem(), "3 MiB") {
		t.Errorf("a large text: %d %.100s", answer.status, answer.body)
	}
	for _, namespace := range []string{"..%2F..", "kube-system%2Fsecrets", "A"} {
		if answer := s.post("/console/v1/validate?namespace="+namespace, smallExperiment); answer.status != http.StatusBadRequest || !strings.Contains(answer.problem(), "namespace") {
			t.Errorf("namespace %s: %d %s", namespace, answer.status, answer.body)
		}
	}
}
