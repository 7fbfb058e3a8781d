package client

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// With the race detector: bytes handed over are not read after the answer.
func TestContentsAreTheCallersAgainAfterAnEarlyAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	c := New(server.URL, server.Client(), nil)
	content := make([]byte, 8<<20)
	for i := range 20 {
		_, _ = c.AppendLogs(t.Context(), "bft", []LogPart{{File: "x.log", Content: content}})
		for j := range content {
			content[j] = byte(i)
		}
	}
}

func TestAnAnswerThatDoesNotFitThePartsIsAnError(t *testing.T) {
	for name, answer := range map[string]string{
		"fewer than parts": `[]`,
		"more than parts":  `[{"status":200,"size":1},{"status":200,"size":1}]`,
		"no size":          `[{"status":200}]`,
		"no answer":        `{}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		appended, err := New(server.URL, server.Client(), nil).AppendLogs(t.Context(), "bft", []LogPart{{File: "x.log", Content: []byte("x")}})
		if err == nil && appended[0].Err == nil {
			t.Errorf("%s: %+v; want an error", name, appended)
		}
		server.Close()
	}
}
