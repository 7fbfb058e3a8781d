package openapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"vignette.dev/vignette/internal/console"
)

// stranger has no session.
type stranger struct{}

func (stranger) Register(*http.ServeMux) {}

func (stranger) User(*http.Request) (*console.User, error) {
	return nil, console.Errorf(http.StatusUnauthorized, "there is no session")
}

func TestTheConsoleHasEveryPathOfItsDescription(t *testing.T) {
	c, err := console.New(console.Config{Assets: fstest.MapFS{}, Library: fstest.MapFS{}, Access: stranger{}, Origins: []string{"http://console.example"}})
	if err != nil {
		t.Fatal(err)
	}
	statusOf := func(method, path string) int {
		request := httptest.NewRequest(method, "http://console.example"+path, http.NoBody)
		request.Header.Set("Origin", "http://console.example")
		answer := httptest.NewRecorder()
		c.ServeHTTP(answer, request)
		return answer.Code
	}
	for _, operation := range Console().Operations {
		method, path, _ := splitRoute(operation.Route)
		path = strings.NewReplacer("{", "", "}", "").Replace(path)
		if got := statusOf(strings.ToUpper(method), Console().Server+path); got != http.StatusUnauthorized {
			t.Errorf("%s: status %d; want 401 of a path that is there", operation.Route, got)
		}
	}
	if got := statusOf("GET", "/console/v1/nothing"); got != http.StatusNotFound {
		t.Errorf("a path that is not there: status %d", got)
	}
}
