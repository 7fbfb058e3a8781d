package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// statusOf an error of the client.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*client.Error](err); ok {
		return answer.Status
	}
	return 0
}

func TestAScenarioIsHandedOutByItsDigest(t *testing.T) {
	l := newLab(t)
	ctx := context.Background()
	content := []byte("compiled hills")
	for range 2 {
		if err := l.as("operator").PutScenario(ctx, digestOf(content), bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, reader := range []string{"radiod", "operator", "admin"} {
		if has, err := l.as(reader).HasScenario(ctx, digestOf(content)); err != nil || !has {
			t.Errorf("%q: has %t, %v", reader, has, err)
		}
		body, err := l.as(reader).Scenario(ctx, digestOf(content))
		if err != nil {
			t.Fatalf("%q: %v", reader, err)
		}
		got, err := io.ReadAll(body)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%q read %q, %v", reader, got, err)
		}
		_ = body.Close()
	}
	if has, err := l.as("radiod").HasScenario(ctx, digestOf([]byte("sea"))); err != nil || has {
		t.Errorf("a scenario that was never stored: %t, %v", has, err)
	}
	if _, err := l.as("radiod").Scenario(ctx, digestOf([]byte("sea"))); !client.IsNotFound(err) {
		t.Errorf("reading it: %v; want not found", err)
	}
}

func TestWhoMayStoreScenariosAndHowMuch(t *testing.T) {
	uploads := func(c *Config) { c.Policy.ScenarioUploads, c.ScenarioQuotaBytes = true, 100 }
	closed := func(*Config) {}
	for name, c := range map[string]struct {
		change func(*Config)
		token  string
		bytes  int
		want   int
	}{
		"the operator":                        {closed, "operator", 10, 0},
		"an administrator":                    {closed, "admin", 10, 0},
		"a user where uploads are off":        {closed, "experimenter", 10, http.StatusForbidden},
		"a user where uploads are on":         {uploads, "experimenter", 50, 0},
		"a user beyond half of the room":      {uploads, "experimenter", 51, http.StatusInsufficientStorage},
		"a user who may only read":            {uploads, "viewer", 10, http.StatusForbidden},
		"nobody":                              {uploads, "", 10, http.StatusUnauthorized},
		"the operator in the other half":      {uploads, "operator", 100, 0},
		"the operator beyond all of the room": {uploads, "operator", 101, http.StatusInsufficientStorage},
		"radiod":                              {uploads, "radiod", 10, http.StatusForbidden},
		"a node's pod":                        {uploads, "nor", 10, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			content := bytes.Repeat([]byte("x"), c.bytes)
			err := newLab(t, c.change).as(c.token).PutScenario(context.Background(), digestOf(content), bytes.NewReader(content))
			if statusOf(err) != c.want || (c.want == 0) != (err == nil) {
				t.Errorf("answer %v; want status %d", err, c.want)
			}
		})
	}
}

func TestAScenarioOfAnotherDigestIsRefused(t *testing.T) {
	l := newLab(t)
	ctx := context.Background()
	err := l.as("operator").PutScenario(ctx, digestOf([]byte("sea")), strings.NewReader("hills"))
	if statusOf(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), digestOf([]byte("hills"))) {
		t.Errorf("answer %v; want 422 that names the digest it has", err)
	}
	if err := l.as("operator").PutScenario(ctx, "sha256:..", strings.NewReader("hills")); statusOf(err) != http.StatusBadRequest {
		t.Errorf("a bad digest: %v; want 400", err)
	}
	if err := newLab(t).as("").PutScenario(ctx, digestOf(nil), nil); statusOf(err) != http.StatusUnauthorized {
		t.Errorf("nobody: %v; want 401", err)
	}
}

// labWithAnUnusedScenario returns a lab with a scenario that was not used for longer than the retention.
func labWithAnUnusedScenario(t *testing.T) (l *lab, digest string) {
	t.Helper()
	l = newLab(t, func(c *Config) {
		c.Retention = time.Hour
		c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	})
	content := []byte("hills")
	if err := l.as("operator").PutScenario(t.Context(), digestOf(content), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return l, digestOf(content)
}

func TestScenariosExpireWithTheRetentionUnlessTheyAreUsed(t *testing.T) {
	l, digest := labWithAnUnusedScenario(t)
	l.server.expireScenarios()
	if has, err := l.as("operator").HasScenario(t.Context(), digest); err != nil || has {
		t.Errorf("still there: %t, %v", has, err)
	}
}

func TestAFullStoreDeletesWhatNoScenarioAndNoRunHas(t *testing.T) {
	ahead := time.Duration(0) // of the clock by which files are marked as used
	l := newLab(t, func(c *Config) {
		c.ScenarioQuotaBytes = 20
		c.Now = func() time.Time { return time.Now().Add(ahead) }
	})
	put := func(text string) error {
		return l.as("operator").PutScenario(t.Context(), digestOf([]byte(text)), strings.NewReader(text))
	}
	hasRoom := func() bool {
		t.Helper()
		room, err := l.as("operator").HasScenarioRoom(t.Context(), "", digestOf([]byte("new-------")), 10)
		if err != nil {
			t.Fatal(err)
		}
		return room
	}
	if err := errors.Join(put("planned---"), put("edited----")); err != nil {
		t.Fatal(err)
	}
	l.plan(func(p *runapi.Plan) {
		p.Scenario = &runapi.PlannedScenario{Name: "hills", Digest: digestOf([]byte("planned---"))}
	})
	if hasRoom() {
		t.Error("there is room among scenarios that were just used")
	}
	if err := put("new-------"); statusOf(err) != http.StatusInsufficientStorage {
		t.Errorf("put: %v; want no room", err)
	}
	ahead = 2 * time.Hour
	if hasRoom() {
		t.Error("there is room, although the operator was silent for long")
	}
	ahead += 20 * time.Minute
	if hasRoom() {
		t.Error("there is room, although the operator may not have asked for all that are in use")
	}
	ahead += 20 * time.Minute
	if !hasRoom() {
		t.Error("there is no room, although the operator has not asked for any of them")
	}
	if err := put("new-------"); err != nil {
		t.Errorf("put: %v; want room", err)
	}
	for text, want := range map[string]bool{"planned---": true, "edited----": false, "new-------": true} {
		if has, err := l.as("operator").HasScenario(t.Context(), digestOf([]byte(text))); err != nil || has != want {
			t.Errorf("the store has %s: %t, %v; want %t", text, has, err, want)
		}
	}
}

func TestAScenarioDoesNotExpireWhileTheArchiveHasARunWithIt(t *testing.T) {
	l, digest := labWithAnUnusedScenario(t)
	withScenario := func(p *runapi.Plan) { p.Scenario = &runapi.PlannedScenario{Name: "hills", Digest: digest} }
	expectAfterExpiry := func(want bool, when string) {
		t.Helper()
		l.server.expireScenarios()
		if has, err := l.as("operator").HasScenario(t.Context(), digest); err != nil || has != want {
			t.Errorf("%s it is there: %t, %v; want %t", when, has, err, want)
		}
	}
	l.plan(withScenario)
	expectAfterExpiry(true, "while the run goes on")
	l.plan(withScenario, ended)
	l.seal()
	expectAfterExpiry(true, "once the run is over, for its reruns,")
	if err := l.as("operator").Delete(t.Context(), runUID); err != nil {
		t.Fatal(err)
	}
	expectAfterExpiry(false, "once the run is deleted")
}

func TestAScenarioIsCompleteOrAbsentWheneverTheServerIsKilled(t *testing.T) {
	dir := t.TempDir()
	content := make([]byte, 8<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	token := func() (string, error) { return "operator", nil }
	kills := 0
	for {
		server := startProcess(t, dir)
		c := client.New(server.url, nil, token)
		if has, err := c.HasScenario(t.Context(), digestOf(content)); err != nil || has {
			t.Fatalf("half a scenario counts as whole, or %v", err)
		}
		// Killed while the body is under way: after a part of it that grows with every kill.
		part := kills * len(content) / 5
		body := io.MultiReader(bytes.NewReader(content[:part]), killingReader{server}, bytes.NewReader(content[part:]))
		if kills == 5 {
			body = bytes.NewReader(content)
		}
		err := c.PutScenario(t.Context(), digestOf(content), body)
		server.kill()
		if err == nil {
			break
		}
		kills++
	}
	if kills != 5 {
		t.Errorf("%d kills, want 5", kills)
	}
	server := startProcess(t, dir)
	defer server.kill()
	body, err := client.New(server.url, nil, token).Scenario(t.Context(), digestOf(content))
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || digestOf(got) != digestOf(content) {
		t.Errorf("%d bytes, %v; want all %d", len(got), err, len(content))
	}
	if entries, err := os.ReadDir(dir + "/.scenarios"); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v; want the scenario alone", len(entries), err)
	}
}

// killingReader kills the server when it is read.
type killingReader struct{ server process }

func (k killingReader) Read([]byte) (int, error) {
	_ = k.server.command.Process.Kill()
	return 0, io.EOF
}
