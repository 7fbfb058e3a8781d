package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"vignette.dev/vignette/internal/openapi"
	"vignette.dev/vignette/internal/runapi"
)

func TestTheDescriptionHasEveryRouteOfTheServer(t *testing.T) {
	var described []string
	for _, operation := range openapi.Archive().Operations {
		described = append(described, operation.Route)
	}
	slices.Sort(described)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(new(Server).handlers())), described); diff != "" {
		t.Errorf("routes (-server +description):\n%s", diff)
	}
}

func TestTheServerServesItsDescription(t *testing.T) {
	l := newLab(t)
	response, err := http.Get(l.http.URL + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var served struct{ OpenAPI string }
	if err := json.NewDecoder(response.Body).Decode(&served); err != nil || response.StatusCode != http.StatusOK || served.OpenAPI != openapi.Version {
		t.Errorf("status %d, openapi %q, %v; want %s", response.StatusCode, served.OpenAPI, err, openapi.Version)
	}
}

func TestAnAnswerThatIsNotAsDescribedIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		route, answer string
		status        int
		described     bool
	}{
		"a usage":                    {"GET /v1/usage", `{"namespace":"n","runs":1,"bytes":2,"quotaBytes":0,"retentionSeconds":0}`, http.StatusOK, true},
		"a usage without its runs":   {"GET /v1/usage", `{"namespace":"n","bytes":2,"quotaBytes":0,"retentionSeconds":0}`, http.StatusOK, false},
		"a usage with text for runs": {"GET /v1/usage", `{"namespace":"n","runs":"1","bytes":2,"quotaBytes":0,"retentionSeconds":0}`, http.StatusOK, false},
		"a problem":                  {"GET /v1/usage", `{"error":"no"}`, http.StatusNotFound, true},
		"a problem without a word":   {"GET /v1/usage", `{}`, http.StatusNotFound, false},
		"a body where none belongs":  {"DELETE /v1/runs/{uid}", `{}`, http.StatusNoContent, false},
		"a phase that is none":       {"GET /v1/agent/plan", `{"revision":1,"actions":[{"id":"a","atNanoseconds":0,"verb":"pause","targets":null}]}`, http.StatusOK, false},
		"a number instead of a list": {"GET /v1/runs", `7`, http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := description().check(c.route, c.status, []byte(c.answer)); (err == nil) != c.described {
				t.Errorf("%v; want as described: %t", err, c.described)
			}
		})
	}
}

// checkAnswers compares every JSON answer of a server with the description.
func checkAnswers(t *testing.T, server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &copiedAnswer{ResponseWriter: w, status: http.StatusOK}
		server.ServeHTTP(answer, r)
		if answer.Header().Get("Content-Type") != "application/json" && answer.body.Len() > 0 || strings.Contains(r.URL.Path, "/files/") && answer.status == http.StatusOK {
			return // a file
		}
		_, route := describedRoutes().Handler(r)
		if route == "" || strings.HasPrefix(route, "GET /v1/compare") && answer.status == http.StatusOK {
			return
		}
		if err := description().check(route, answer.status, answer.body.Bytes()); err != nil {
			t.Errorf("%s answered %d %.500s: %v", route, answer.status, answer.body.Bytes(), err)
		}
	})
}

// describedRoutes finds the route of a request.
var describedRoutes = sync.OnceValue(func() *http.ServeMux {
	mux := http.NewServeMux()
	for route := range new(Server).handlers() {
		mux.Handle(route, http.NotFoundHandler())
	}
	return mux
})

type copiedAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (c *copiedAnswer) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *copiedAnswer) Write(p []byte) (int, error) {
	if c.body.Len() < 1<<20 {
		c.body.Write(p)
	}
	return c.ResponseWriter.Write(p)
}

func (c *copiedAnswer) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// describedAnswers are the schemas of runapi.OpenAPI.
type describedAnswers struct {
	document any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
}

const documentURL = "openapi.json"

var description = sync.OnceValue(func() *describedAnswers {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(runapi.OpenAPI))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(documentURL, document); err != nil {
		panic(err)
	}
	return &describedAnswers{document: document, compiler: compiler}
})

// check compares an answer with the schema of its route and status.
func (d *describedAnswers) check(route string, status int, answer []byte) error {
	method, path, _ := strings.Cut(route, " ")
	path = strings.ReplaceAll(path, "...", "")
	escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path)
	at := "#/paths/" + escaped + "/" + strings.ToLower(method) + "/responses/" + strconv.Itoa(status)
	if status >= http.StatusBadRequest {
		at = strings.TrimSuffix(at, strconv.Itoa(status)) + "default"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(answer) == 0 {
		_, err := d.compiler.Compile(documentURL + at) // that the status is described
		return err
	}
	schema, err := d.compiler.Compile(documentURL + at + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}
