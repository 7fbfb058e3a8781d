package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestPrometheusAnswersReadersAndTheKubeletsProbesOnly(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.RequestURI()+r.Header.Get("Authorization"))
	}))
	defer prometheus.Close()
	target, err := url.Parse(prometheus.URL)
	if err != nil {
		t.Fatal(err)
	}
	only := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer p" {
				http.Error(w, "refused", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	handler := guardHandler(only, target)
	for path, c := range map[string]struct{ authorization, want string }{
		"/api/v1/query?query=up":            {"Bearer p", "/api/v1/query?query=up"},
		"/api/v1/query":                     {"Bearer t", "refused\n"},
		"/":                                 {"", "refused\n"},
		"/-/ready":                          {"", "/-/ready"},
		"/-/healthy":                        {"", "/-/healthy"},
		"/-/reload":                         {"", "refused\n"},
		"/-/ready/../../api/v1/query":       {"", ""},
		"/-/ready%2f..%2f..%2fapi/v1/query": {"", "refused\n"},
	} {
		request, answer := httptest.NewRequest(http.MethodGet, path, http.NoBody), httptest.NewRecorder()
		request.Header.Set("Authorization", c.authorization)
		handler.ServeHTTP(answer, request)
		if got := answer.Body.String(); answer.Code != http.StatusTemporaryRedirect && answer.Code != http.StatusMovedPermanently && got != c.want {
			t.Errorf("%s with %q: %d %q; want %q", path, c.authorization, answer.Code, got, c.want)
		}
	}
}
