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
		writeText(w, "application/json", `{"apiVersion":"v1","kind":"List","items":[]}`)
	}
}

func judged(t *testing.T, s *site, query, text string) (answer validate.Summary) {
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
func last(answer validate.Summary) validate.Finding { return answer.Findings[len(answer.Findings)-1] }

func TestAnErrorIsToldWithItsLineAndField(t *testing.T) {
	s := startLocal(t, namespaceObjects).logIn()
	answer := judged(t, s, "?namespace=team-nor", strings.Replace(smallExperiment, "count: 3", "cuont: 3", 1))
	if answer.Valid || len(answer.Findings) == 0 || last(answer).Line != 12 || last(answer).Path != "spec.nodes[1].cuont" {
		t.Errorf("%+v", answer)
	}
}

func TestWhatTheNamespaceHasIsNotMissed(t *testing.T) {
	s := startLocal(t, namespaceObjects).logIn()
	for query, wants := range map[string]bool{"?namespace=team-nor": false, "": true} {
		answer := judged(t, s, query, strings.Replace(smallExperiment, "WAVEFORM", "of-the-lab", 1))
		if !answer.Valid || (len(answer.Findings) > 0) != wants {
			t.Errorf("%q: %+v; want a warning: %v", query, answer, wants)
		}
	}
	answer := judged(t, s, "?namespace=team-nor", strings.Replace(smallExperiment, "WAVEFORM", "of-another-lab", 1))
	if len(answer.Findings) == 0 || !strings.Contains(answer.Findings[0].Message, "of-another-lab is not in the library") {
		t.Errorf("an unknown waveform: %+v", answer)
	}
}

func TestWhatCouldNotBeReadOfTheClusterIsAWarning(t *testing.T) {
	text := strings.Replace(smallExperiment, "WAVEFORM", "baseline", 1)
	for status, want := range map[int]string{http.StatusServiceUnavailable: "Waveforms could not be read", http.StatusForbidden: "", http.StatusNotFound: ""} {
		s := startLocal(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/waveforms") {
				w.WriteHeader(status)
				writeText(w, "application/json", `{"kind":"Status","message":"the storage is down"}`)
				return
			}
			namespaceObjects(w, r)
		}).logIn()
		answer := judged(t, s, "?namespace=team-nor", text)
		if !answer.Valid || (len(answer.Findings) > 0) != (want != "") {
			t.Errorf("%d: %+v; want a warning: %q", status, answer, want)
		} else if want != "" && (!strings.Contains(last(answer).Message, want) || !strings.Contains(last(answer).Message, "the storage is down") || !last(answer).Warning) {
			t.Errorf("%d: %+v; want %q", status, last(answer), want)
		}
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
