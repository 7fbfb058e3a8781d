package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	archive "vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// everyone takes all tokens for the same caller, who is the operator and the agent at once.
type everyone struct{}

func (everyone) Authenticate(context.Context, string) (archive.Identity, error) {
	return archive.Identity{Username: "system:serviceaccount:lab:x", PodUID: "pod"}, nil
}

// newRealShipper ships to the real server over loopback.
func newRealShipper(tb testing.TB) (*shipper, string) {
	tb.Helper()
	// A clock that hurries keeps the server's limit of requests per second out of the measurement.
	var asked atomic.Int64
	now := func() time.Time { return time.Unix(0, asked.Add(1e7)) }
	s, err := archive.New(archive.Config{Dir: tb.TempDir(), Authenticator: everyone{}, Log: slog.New(slog.DiscardHandler), Now: now,
		Policy: archive.Policy{OperatorUser: "system:serviceaccount:lab:x"}})
	if err != nil {
		tb.Fatal(err)
	}
	web := httptest.NewServer(s)
	tb.Cleanup(func() { web.Close(); _ = s.Close() })
	dir := tb.TempDir()
	token := filepath.Join(tb.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	c := client.New(web.URL, httpClient(), client.TokenFile(token))
	plan := runapi.Plan{Namespace: "lab", Name: "bench", UID: "uid", Phase: v1alpha1.PhaseRunning,
		Nodes: []runapi.PlannedNode{{Name: "nor", PodUID: "pod", Apps: []runapi.PlannedApp{{Name: "bft", Kind: "traffic"}}}}}
	if _, err := c.PutPlan(context.Background(), plan); err != nil {
		tb.Fatal(err)
	}
	events, err := openEvents(tb.TempDir(), io.Discard, func() int64 { return 1 })
	if err != nil {
		tb.Fatal(err)
	}
	return newShipper(dir, "bft", c, events), dir
}

// BenchmarkRound is the cost, on both sides, of shipping four new records of each of eight logs.
func BenchmarkRound(b *testing.B) {
	shipper, dir := newRealShipper(b)
	var logs [8]*os.File
	for i := range logs {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("messages-%d.jsonl", i+1)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		logs[i] = f
	}
	record := []byte(`{"ts":1763700000000000000,"instance":"nor/bft/1","status":"received","id":"nor-bft-000123","topic":"nor/bft","bytes":480}` + "\n")
	records := bytes.Repeat(record, 4)
	before := cpuSeconds(b)
	for b.Loop() {
		for _, f := range logs {
			if _, err := f.Write(records); err != nil {
				b.Fatal(err)
			}
		}
		if whole, err := shipper.round(b.Context(), bytesPerRound, false); err != nil || !whole {
			b.Fatalf("round: whole %v, %v", whole, err)
		}
	}
	b.ReportMetric((cpuSeconds(b)-before)*1e6/float64(b.N), "cpu-µs/op")
}

// cpuSeconds that this process has used, in user and kernel mode.
func cpuSeconds(tb testing.TB) float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		tb.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(use.Utime) + seconds(use.Stime)
}
