package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

func TestCollectSealsAndNamesWhatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []int
		wantErr string
		want    string
	}{
		"at once":                    {[]int{200}, "", "missing: logs of nor/bft"},
		"after a restart":            {[]int{503, 500, 200}, "", "sealed: 1 files, 7 bytes"},
		"not for a run that is gone": {[]int{404, 200}, "404", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answers := tc.answers
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				status := answers[0]
				answers = answers[1:]
				w.WriteHeader(status)
				if r.Method != http.MethodPost || r.URL.Path != "/v1/runs/u/seal" || r.Header.Get("Authorization") != "Bearer t" {
					t.Errorf("request %s %s with %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
				}
				if status == http.StatusOK {
					_ = json.NewEncoder(w).Encode(runapi.Manifest{Files: []runapi.ManifestFile{{Path: "a", Bytes: 7}}, Gaps: []runapi.Gap{{What: "logs of nor/bft", Reason: "lost"}}})
				}
			}))
			defer server.Close()
			token := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(token, []byte("t\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := collect(context.Background(), collectOptions{server: server.URL, run: "u", tokenFile: token, wait: time.Second}, time.Millisecond, &out)
			if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("output %q lacks %q", out.String(), tc.want)
			}
		})
	}
}
