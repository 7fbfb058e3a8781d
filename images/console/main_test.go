package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/console"
)

func TestTheKubeletMayProbeByAnyName(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	if err := os.WriteFile(ca, pemOf(server), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{memoryLimit: "2Gi", server: server.URL, serverCA: ca, team: console.TeamConfig{Origin: "https://console.example", Issuer: "https://login.example", ClientID: "vignette"}}
	handler, err := o.handler()
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]int{
		"http://10.0.0.7:8080/healthz": http.StatusOK, "http://10.0.0.7:8080/": http.StatusMisdirectedRequest, "https://console.example/": http.StatusOK,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, target, nil))
		if answer.Code != want {
			t.Errorf("%s: %d; want %d", target, answer.Code, want)
		}
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	full := options{memoryLimit: "2Gi", team: console.TeamConfig{Origin: "https://console.example", Issuer: "https://login.example", ClientID: "vignette"}}
	for want, change := range map[string]func(*options){
		"--issuer":             func(o *options) { o.team.Issuer = "" },
		"--client-secret-file": func(o *options) { o.secretFile = "/nowhere" },
		"--app-memory-limit \"2 GB\": use bytes such as 2Gi": func(o *options) { o.memoryLimit = "2 GB" },
		"--issuer-ca": func(o *options) { o.issuerCA = "/nowhere" },
		"https":       func(o *options) { o.team.Origin = "http://console.example" },
	} {
		o := full
		change(&o)
		if _, err := o.handler(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
