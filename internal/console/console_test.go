package console

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheSessionSaysWhoTheUserIsToKubernetes(t *testing.T) {
	s := startLocal(t, nil).logIn()
	var session Session
	answer := s.get("/console/v1/session")
	if err := json.Unmarshal([]byte(answer.body), &session); err != nil {
		t.Fatal(err)
	}
	if session.Mode != "local" || session.User != "alice" || len(session.Groups) != 1 || session.Context != "lab" || session.Namespace != "team-nor" ||
		session.PlatformNamespace != "vignette-system" || session.Version != "test" {
		t.Errorf("session %+v", session)
	}
}

func TestAnAPIServerThatIsDownIsNamed(t *testing.T) {
	s := startLocal(t, nil).logIn()
	s.api.Close()
	for _, path := range []string{"/console/v1/session", experiments} {
		answer := s.get(path)
		if answer.status != http.StatusBadGateway || !strings.Contains(answer.problem(), "cannot be reached") || strings.Contains(answer.body, "dial tcp") {
			t.Errorf("%s: %d %s; want 502 in plain words", path, answer.status, answer.body)
		}
	}
}

func TestFilesOfTheBuildAreKeptByTheBrowserAndThePageIsNot(t *testing.T) {
	s := startLocal(t, nil)
	for path, want := range map[string]string{"/assets/index-abc.js": "immutable", "/icon.svg": "no-cache", "/": "no-store", "/compare": "no-store"} {
		if got := s.get(path).header.Get("Cache-Control"); !strings.Contains(got, want) {
			t.Errorf("%s: Cache-Control %q; want %s", path, got, want)
		}
	}
	if answer := s.get("/assets/gone-abc.js"); answer.status != http.StatusNotFound || !strings.Contains(answer.problem(), "reload") {
		t.Errorf("a file of an earlier build: %d %s; want 404 and what to do", answer.status, answer.body)
	}
	etag := s.get("/icon.svg").header.Get("Etag")
	if answer := s.get("/icon.svg", "If-None-Match: "+etag); answer.status != http.StatusNotModified {
		t.Errorf("with ETag %s: %d; want 304", etag, answer.status)
	}
}

func TestFilesAreSentInTheFormThatTheBrowserTakes(t *testing.T) {
	s := startLocal(t, nil)
	for accepted, want := range map[string]string{"gzip, deflate, br": "br", "gzip": "gzip", "br;q=0, gzip;q=0.5": "gzip", "identity": "", "": ""} {
		answer := s.get("/assets/index-abc.js", "Accept-Encoding: "+accepted)
		if got := answer.header.Get("Content-Encoding"); got != want || answer.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: %q; want %q", accepted, got, want)
		}
		if want == "gzip" && len(answer.body) >= len(build["assets/index-abc.js"].Data) {
			t.Errorf("gzip made %d bytes", len(answer.body))
		}
	}
}

func TestAProgramWithoutAPageSaysHowToBuildIt(t *testing.T) {
	if p := newPages(fstest.MapFS{}); !strings.Contains(string(p.index), "make build") {
		t.Errorf("page %s", p.index)
	}
}

func TestTheLibraryTellsWhatEachFileIsFor(t *testing.T) {
	s := startLocal(t, nil).logIn()
	var entries []LibraryEntry
	if err := json.Unmarshal([]byte(s.get("/console/v1/library").body), &entries); err != nil {
		t.Fatal(err)
	}
	want := []LibraryEntry{
		{"e4/campaigns/all.yaml", "E4: all of it", "Campaign", "e4", "e4"},
		{"quickstart/experiment.yaml", "Ten nodes of version 1.5 and a broker", "Experiment", "quickstart", "quickstart"},
	}
	if len(entries) != 2 || entries[0] != want[0] || entries[1] != want[1] {
		t.Errorf("entries %+v; want %+v", entries, want)
	}
	answer := s.get("/console/v1/library/quickstart/experiment.yaml")
	if !strings.HasPrefix(answer.body, "# Ten nodes") || answer.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%v %s", answer.header, answer.body)
	}
	if answer := s.get("/console/v1/library/none.yaml"); answer.status != http.StatusNotFound || !strings.Contains(answer.problem(), "none.yaml") {
		t.Errorf("%d %s; want 404 with the name", answer.status, answer.body)
	}
}

func TestAWatchComesPieceByPiece(t *testing.T) {
	next := make(chan string)
	s := startLocal(t, func(w http.ResponseWriter, _ *http.Request) {
		for text := range next {
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	}).logIn()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.origin+experiments+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { next <- "one" }()
	answer, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	defer close(next)
	for _, want := range []string{"one", "two"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(answer.Body, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %s before the watch ends", got, err, want)
		}
		if want == "one" {
			next <- "two"
		}
	}
}
