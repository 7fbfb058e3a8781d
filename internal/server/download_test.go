package server

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

const evil = "<script>alert(document.domain)</script>"

// sealedLab has a run with a log, a radio log and results, all sealed.
func sealedLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.plan(withT0)
	l.log("nor", "bft", "messages-1.jsonl", evil+"\n")
	l.log("nor", "bft", "stdout-1.log", strings.Repeat("x", 3*pieceBytes)+"\n")
	if _, err := l.as("radiod").AppendRadio(context.Background(), "host-a", runUID, 0, strings.NewReader("{\"ts\":1}\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report.html", "a.svg", "a.csv", "deliveries.parquet"} {
		if err := l.as("workflow").PutResult(context.Background(), runUID, name, strings.NewReader(evil)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lab) get(path string) (http.Header, []byte) {
	l.t.Helper()
	response, err := l.fetch(path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		l.t.Fatalf("%s: %s %s %v", path, response.Status, text, err)
	}
	return response.Header, text
}

func unpack(t *testing.T, archive io.Reader) (names []string, content map[string]string) {
	t.Helper()
	content = map[string]string{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if err == io.EOF {
			return names, content
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, content[header.Name] = append(names, header.Name), string(text)
	}
}

func TestTheArchiveOfARunHasEveryFileInOrder(t *testing.T) {
	l := sealedLab(t)
	manifest, err := l.as("admin").Files(context.Background(), runUID)
	if err != nil {
		t.Fatal(err)
	}
	header, first := l.get("/v1/runs/" + runUID + "/archive.tar")
	if got := header.Get("Content-Disposition"); got != `attachment; filename="quickstart-run-1.tar"` {
		t.Errorf("Content-Disposition %s", got)
	}
	names, content := unpack(t, bytes.NewReader(first))
	want := make([]string, len(manifest.Files))
	for i, file := range manifest.Files {
		want[i] = "quickstart-run-1/" + file.Path
		if got := content[want[i]]; int64(len(got)) != file.Bytes || file.SHA256 != "" && fmt.Sprintf("%x", sha256.Sum256([]byte(got))) != file.SHA256 {
			t.Errorf("%s has %d bytes of %d, or others", file.Path, len(got), file.Bytes)
		}
	}
	if !slices.Equal(names, want) || !slices.IsSorted(names) {
		t.Errorf("files %v; want %v", names, want)
	}
	if _, again := l.get("/v1/runs/" + runUID + "/archive.tar"); !bytes.Equal(first, again) {
		t.Error("the same run gave another archive")
	}
}

func TestAnArchiveTakesTheKindsThatAreWanted(t *testing.T) {
	l := sealedLab(t)
	for query, want := range map[string]string{
		"only=radio":            "radio",
		"only=results,radio":    "radio results",
		"without=logs,results":  "radio records",
		"only=captures":         "",
		"without=records,radio": "logs results",
	} {
		_, text := l.get("/v1/runs/" + runUID + "/archive.tar?" + query)
		names, _ := unpack(t, bytes.NewReader(text))
		kinds := map[string]bool{}
		for _, name := range names {
			kinds[runapi.KindOf(strings.TrimPrefix(name, "quickstart-run-1/"))] = true
		}
		if got := strings.Join(slices.Sorted(maps.Keys(kinds)), " "); got != want {
			t.Errorf("%s: %s; want %s", query, got, want)
		}
	}
	for name, selection := range map[string]runapi.Selection{
		`"log" is not a kind of files`: {Only: []string{"log"}}, "one of the two": {Only: []string{"logs"}, Without: []string{"captures"}},
	} {
		_, err := l.as("admin").Archive(context.Background(), runUID, selection)
		if status(err) != http.StatusBadRequest || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v; want 400 and %s", selection, err, name)
		}
	}
}

func TestATruncatedArchiveIsNotTakenForACompleteOne(t *testing.T) {
	l := sealedLab(t)
	const size = 32 << 20 // more than lies in sockets
	if err := l.as("workflow").PutResult(context.Background(), runUID, "big.bin", io.LimitReader(zeros{}, size)); err != nil {
		t.Fatal(err)
	}
	body, err := l.as("admin").Archive(context.Background(), runUID, runapi.Selection{Only: []string{"results"}})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadFull(body, make([]byte, 64<<10)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(l.dir, "team-nor", "quickstart", runUID, "results", "big.bin"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, body); err == nil {
		t.Errorf("the rest of the archive, %d bytes, ended as if it were whole", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestEveryFileOfASealedRunHasADigestWhereItIsAskedFor(t *testing.T) {
	l := sealedLab(t)
	for range 2 { // the second time from memory
		manifest, err := l.as("admin").Digests(context.Background(), runUID)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range manifest.Files {
			_, text := l.get("/v1/runs/" + runUID + "/files/" + file.Path)
			if want := fmt.Sprintf("%x", sha256.Sum256(text)); file.SHA256 != want {
				t.Errorf("%s has digest %q; want %s", file.Path, file.SHA256, want)
			}
		}
		if err := l.as("workflow").PutResult(context.Background(), runUID, "a.csv", strings.NewReader("written again")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLogsThatGrowHaveNoDigest(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	l.log("nor", "bft", "messages-1.jsonl", "{}\n")
	manifest, err := l.as("admin").Digests(context.Background(), runUID)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range manifest.Files {
		if file.SHA256 != "" {
			t.Errorf("%s of a run that goes on has a digest", file.Path)
		}
	}
}

func TestOnlyTheReportIsAPageAndItReachesNothing(t *testing.T) {
	l := sealedLab(t)
	header, text := l.get("/v1/runs/" + runUID + "/report")
	if string(text) != evil || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("the report is %q of type %s", text, header.Get("Content-Type"))
	}
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "sandbox", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q; want %s in it", policy, want)
		}
	}
	for _, forbidden := range []string{"allow-same-origin", "allow-top-navigation", "http:", "https:", "'self'", "*", "connect-src"} {
		if strings.Contains(policy, forbidden) {
			t.Errorf("policy %q allows %s", policy, forbidden)
		}
	}
	if header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("the report's type may be guessed")
	}
}

// activeTypes types are those that a browser runs something of.
var activeTypes = []string{"html", "svg", "xml", "javascript", "pdf"}

func TestNothingElseIsEverAPage(t *testing.T) {
	l := sealedLab(t)
	digest := digestOf([]byte(evil))
	if err := l.as("operator").PutScenario(context.Background(), digest, strings.NewReader(evil)); err != nil {
		t.Fatal(err)
	}
	paths := []string{"/v1/runs", "/v1/runs/" + runUID, "/v1/runs/" + runUID + "/files", "/v1/runs/" + runUID + "/archive.tar", "/v1/scenarios/" + digest,
		"/v1/runs/" + runUID + "/files/logs/nor/bft/messages-1.jsonl?follow=true"}
	manifest, err := l.as("admin").Files(context.Background(), runUID)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range manifest.Files {
		paths = append(paths, "/v1/runs/"+runUID+"/files/"+file.Path, "/v1/runs/"+runUID+"/files/"+file.Path+"?offset=1")
	}
	for _, path := range paths {
		header, _ := l.get(path)
		kind := header.Get("Content-Type")
		if kind == "" || slices.ContainsFunc(activeTypes, func(a string) bool { return strings.Contains(kind, a) }) || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s has type %q, options %q; want one that no browser runs, and nosniff", path, kind, header.Get("X-Content-Type-Options"))
		}
	}
}

func TestARunWithoutAReportSaysSo(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	response, err := l.fetch("/v1/runs/" + runUID + "/report")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusNotFound || !strings.Contains(string(text), "the analysis writes it after the run") {
		t.Errorf("%s: %s", response.Status, text)
	}
}

func TestARecordOfALaterVersionIsNeitherReadNorPutAside(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	l.stop()
	p := filepath.Join(l.dir, "team-nor", "quickstart", runUID, "run.json")
	later := []byte(`{"schemaVersion": 99, "nodes": "something else"}`)
	if err := os.WriteFile(p, later, 0o600); err != nil {
		t.Fatal(err)
	}
	l.start()
	if _, err := l.as("admin").State(context.Background(), runUID); !client.IsNotFound(err) {
		t.Errorf("the run is served: %v", err)
	}
	if problems := l.server.runs.problems; len(problems) != 1 || !strings.Contains(problems[0].Error(), "run.json has schemaVersion 99, and this program reads versions up to 2") {
		t.Errorf("problems %v", problems)
	}
	if got, err := os.ReadFile(p); err != nil || !bytes.Equal(got, later) {
		t.Errorf("run.json is %q now, %v", got, err)
	}
}
