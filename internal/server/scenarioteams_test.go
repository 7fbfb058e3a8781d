package server

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

func TestANamespaceHasAtMostHalfOfTheRoomForScenarios(t *testing.T) {
	ahead := time.Duration(0)
	l := newLab(t, func(c *Config) {
		c.ScenarioQuotaBytes = 100
		c.Now = func() time.Time { return time.Now().Add(ahead) }
	})
	operator := l.as("operator")
	contentOf := func(letter string, size int) []byte { return bytes.Repeat([]byte(letter), size) }
	put := func(namespace string, content []byte) int {
		return statusOf(operator.PutScenarioFor(t.Context(), namespace, digestOf(content), bytes.NewReader(content)))
	}
	hasRoom := func(namespace string, size int64) bool {
		t.Helper()
		room, err := operator.HasScenarioRoom(t.Context(), namespace, digestOf([]byte("new")), size)
		if err != nil {
			t.Fatal(err)
		}
		return room
	}
	if got := put("team-nor", contentOf("a", 40)); got != 0 {
		t.Fatalf("40 bytes of half of 100: %d", got)
	}
	if got := put("team-nor", contentOf("b", 11)); got != http.StatusInsufficientStorage || hasRoom("team-nor", 11) || !hasRoom("team-nor", 10) {
		t.Errorf("11 bytes beside 40 of half of 100: %d; want no room, and room for 10", got)
	}
	if got := put("team-prt", contentOf("b", 40)); got != 0 || !hasRoom("team-prt", 10) {
		t.Errorf("another namespace: %d; want it stored", got)
	}
	if got := put("team-nor", contentOf("b", 40)); got != 0 {
		t.Errorf("a scenario that is stored already: %d; want it taken", got)
	}
	ahead = scenarioUnusedFor + time.Minute
	l.plan(func(p *runapi.Plan) { p.Scenario = &runapi.PlannedScenario{Digest: digestOf(contentOf("a", 40))} })
	if hasRoom("team-nor", 11) || !hasRoom("team-nor", 10) {
		t.Error("the namespace's run counts otherwise than its scenario's 40 bytes")
	}
	if has, err := operator.HasScenarioFor(t.Context(), "team-prt", digestOf(contentOf("b", 40))); err != nil || !has || hasRoom("team-prt", 11) {
		t.Errorf("has %v, %v; want a Scenario that the operator asks for to count", has, err)
	}
}

func TestScenariosThatAreStoredAtOnceShareTheirNamespacesRoom(t *testing.T) {
	l := newLab(t, func(c *Config) { c.ScenarioQuotaBytes, c.Policy.ScenarioUploads = 100, true })
	first := &teamScenario{server: l.server, namespace: "team-nor", room: l.server.scenarioRoomOf("team-nor"), body: strings.NewReader(strings.Repeat("x", 40))}
	if _, err := first.Read(make([]byte, 40)); err != nil {
		t.Fatal(err)
	}
	store := func() int {
		content := bytes.Repeat([]byte("y"), 11)
		request := httptest.NewRequest(http.MethodPut, "/v1/scenarios/"+digestOf(content), bytes.NewReader(content))
		who := Identity{Username: "emil", Scope: "team-nor"}
		answer := httptest.NewRecorder()
		l.server.ServeHTTP(answer, request.WithContext(context.WithValue(request.Context(), verifiedIdentityKey{}, who)))
		return answer.Code
	}
	if got := store(); got != http.StatusInsufficientStorage {
		t.Errorf("11 bytes while 40 of half of 100 are stored: %d; want no room", got)
	}
	first.end()
	if got := store(); got != http.StatusNoContent {
		t.Errorf("after that has ended: %d; want it stored", got)
	}
}
