package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// mapReader is a user whose API server has one run.
type mapReader struct{ user *User }

func (a mapReader) Register(*http.ServeMux) {}

func (a mapReader) User(*http.Request) (*User, error) { return a.user, nil }

// nameIsToken takes each token for its user's name.
type nameIsToken struct{}

func (nameIsToken) Authenticate(_ context.Context, token string) (server.Identity, error) {
	return server.Identity{Username: token}, nil
}

// archiveServer has the recorded run of package mapdata, with a movement.
func archiveServer(t *testing.T) (url string, plan runapi.Plan, object *v1alpha1.Scenario) {
	t.Helper()
	text, log := recordedFile(t, "plan.json"), recordedFile(t, "radio.jsonl")
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	seed := int64(1)
	object = &v1alpha1.Scenario{Spec: v1alpha1.ScenarioSpec{Format: "synthetic", Synthetic: &v1alpha1.SyntheticMovement{Pattern: "RandomWaypoint", Platforms: 24, Duration: "60s", Seed: 1, Spacing: "500m"},
		Propagation: &v1alpha1.Propagation{Model: "FreeSpace", Frequency: "300MHz", SyntheticTerrain: &seed}}}
	var compiled bytes.Buffer
	result, err := compile.Compile(t.Context(), object.Spec, nil, &compiled)
	if err != nil {
		t.Fatal(err)
	}
	plan.Scenario.Digest, object.Status.Digest = result.Digest, result.Digest
	s, err := server.New(server.Config{Dir: t.TempDir(), Authenticator: nameIsToken{}, Policy: server.Policy{OperatorUser: "operator", RadiodUser: "radiod", AdminUsers: []string{"anna"}}})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	as := func(user string) *client.Client {
		return client.New(listening.URL, nil, func() (string, error) { return user, nil })
	}
	if _, err := as("operator").PutPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if _, err := as("radiod").AppendRadio(t.Context(), "n1", plan.UID, 0, bytes.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	if err := as("anna").PutScenario(t.Context(), result.Digest, &compiled); err != nil {
		t.Fatal(err)
	}
	return listening.URL, plan, object
}

func recordedFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("mapdata/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// mapConsole is a console for the recorded run, and its plan.
func mapConsole(t *testing.T) (*Console, runapi.Plan) {
	t.Helper()
	archive, plan, object := archiveServer(t)
	target, err := url.Parse(archive)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(runapi.ArchivePath(plan.Namespace)+"/", func(w http.ResponseWriter, r *http.Request) {
		forward, _ := http.NewRequestWithContext(r.Context(), r.Method, target.String()+strings.TrimPrefix(r.URL.RequestURI(), runapi.ArchivePath(plan.Namespace)), r.Body)
		forward.Header = r.Header.Clone()
		forward.Header.Set("Authorization", "Bearer anna")
		answer, err := http.DefaultClient.Do(forward)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
	mux.HandleFunc("/apis/vignette.dev/v1alpha1/namespaces/"+plan.Namespace+"/scenarios/"+plan.Scenario.Name, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(object)
	})
	api := httptest.NewServer(mux)
	t.Cleanup(api.Close)
	address, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Assets: fstest.MapFS{}, Library: fstest.MapFS{}, Access: mapReader{&User{Server: address, Transport: http.DefaultTransport}}, Origins: []string{"http://console.example"}})
	if err != nil {
		t.Fatal(err)
	}
	return c, plan
}

// ask a console.
func ask(t *testing.T, c *Console, method, path, body string) (status int, answer []byte) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, "http://console.example"+path, strings.NewReader(body))
	request.Header.Set("Origin", "http://console.example")
	recorder := httptest.NewRecorder()
	c.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.Bytes()
}

// describedSchema is one of this package's openapi.json.
func describedSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("openapi.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

const lonely = `apiVersion: vignette.dev/v1alpha1
kind: Scenario
metadata: {name: lonely}
spec:
  format: csv
  source: {configMap: files, key: a.csv}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data:
  a.csv: |
    0,1,58.1,7.9,0
`

func TestMapsLinksAndPreviewsAreAsDescribed(t *testing.T) {
	c, plan := mapConsole(t)
	run := "/console/v1/namespaces/" + plan.Namespace + "/runs/" + plan.UID
	for name, asked := range map[string]struct{ schema, method, path, body, want string }{
		"the map":                          {"Map", "GET", run + "/map", "", `"terrain":{"west":`},
		"links at a time":                  {"Links", "GET", run + "/links?network=net-a&at=140.5", "", `"atSeconds":140.5`},
		"newest links":                     {"Links", "GET", run + "/links?network=net-b&hopsFrom=b-1", "", `"hopsFrom":"b-1"`},
		"expected links":                   {"Links", "GET", run + "/links?network=lead&at=1&expected=true", "", `"expected":true`},
		"links of a silent moment":         {"Links", "GET", run + "/links?network=net-a&at=1", "", `"links":[]`},
		"a preview of a lonely platform":   {"ScenarioPreview", "POST", "/console/v1/scenario/preview?at=1&limit=110", lonely, `"limitDB":110`},
		"a preview without what is wanted": {"ScenarioPreview", "POST", "/console/v1/scenario/preview", lonely, `"hops":[]`},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := ask(t, c, asked.method, asked.path, asked.body)
			if status != http.StatusOK || !bytes.Contains(answer, []byte(asked.want)) {
				t.Fatalf("status %d, %.500s; want %s", status, answer, asked.want)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
			if err != nil {
				t.Fatal(err)
			}
			if err := describedSchema(t, asked.schema).Validate(value); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBadQuestionsAboutMapsAreRefusedInPlainWords(t *testing.T) {
	c, plan := mapConsole(t)
	run := "/console/v1/namespaces/" + plan.Namespace + "/runs/" + plan.UID
	for name, asked := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"another run":        {"GET", "/console/v1/namespaces/" + plan.Namespace + "/runs/none/map", "", http.StatusNotFound, `no run has uid \"none\"`},
		"another namespace":  {"GET", "/console/v1/namespaces/team-usa/runs/" + plan.UID + "/map", "", http.StatusNotFound, "run " + plan.UID},
		"no network":         {"GET", run + "/links", "", http.StatusBadRequest, "has net-a, net-b, lead"},
		"a time in words":    {"GET", run + "/links?network=net-a&at=noon", "", http.StatusBadRequest, `at \"noon\": want seconds from 0 to`},
		"a word for true":    {"GET", run + "/links?network=net-a&expected=perhaps", "", http.StatusBadRequest, `expected \"perhaps\": want true or false`},
		"no number":          {"GET", run + "/links?network=net-a&at=NaN", "", http.StatusBadRequest, `at \"NaN\": want seconds from 0 to`},
		"a limit in words":   {"POST", "/console/v1/scenario/preview?limit=far", lonely, http.StatusBadRequest, `limit \"far\": want a pathloss in dB above 0`},
		"a platform by name": {"POST", "/console/v1/scenario/preview?from=hq", lonely, http.StatusBadRequest, `from \"hq\": want the number of a platform`},
		"no YAML of objects": {"POST", "/console/v1/scenario/preview", "kind Scenario", http.StatusUnprocessableEntity, "scenario.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := ask(t, c, asked.method, asked.path, asked.body)
			var problem runapi.Problem
			if err := json.Unmarshal(answer, &problem); err != nil || problem.Error == "" {
				t.Fatalf("%v: %.300s; want an error", err, answer)
			}
			if status != asked.status || !bytes.Contains(answer, []byte(asked.want)) {
				t.Errorf("status %d, %s; want %d with %s", status, answer, asked.status, asked.want)
			}
		})
	}
}
