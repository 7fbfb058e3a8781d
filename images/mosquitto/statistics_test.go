package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/trafficconfig"
)

func TestAMosquittosStatisticsAreServed(t *testing.T) {
	t.Parallel()
	program := testtool.Need(t, "mosquitto")
	dir, port, metrics := t.TempDir(), testport.Free(t), testport.Free(t)
	config, err := json.Marshal(trafficconfig.Config{Instance: "nor/broker/statistics", Protocol: "mqtt", Broker: fmt.Sprintf("127.0.0.1:%d", port), MetricsPort: metrics,
		Subscribe: &trafficconfig.Subscribe{Topics: []string{prefix + "#"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"mosquitto.conf": fmt.Sprintf("listener %d 127.0.0.1\nallow_anonymous true\nsys_interval 1\nuser root\n", port), "statistics.json": string(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- serve(ctx, filepath.Join(dir, "statistics.json")) }()
	broker := exec.CommandContext(ctx, program, "-c", filepath.Join(dir, "mosquitto.conf"))
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	wants := []string{`vignette_mosquitto_up{instance="nor/broker/statistics"} 1`, "vignette_mosquitto_clients_connected{", "vignette_mosquitto_publish_dropped_total{",
		"vignette_mosquitto_bytes_sent_total{", "vignette_mosquitto_uptime_seconds{", "vignette_mosquitto_stored_messages{", "vignette_mosquitto_subscriptions{"}
	missing := ""
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		text := get(fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics))
		missing = ""
		for _, want := range wants {
			if !strings.Contains(text, want) {
				missing += " " + want
			}
		}
		if missing == "" {
			break
		}
	}
	if missing != "" {
		t.Errorf("after 15 s there is no%s", missing)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_ = broker.Wait()
}

func get(url string) string {
	response, err := http.Get(url) //nolint:gosec,noctx // a server of this test
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

func TestStatisticsAreReadAsTheBrokerWritesThem(t *testing.T) {
	t.Parallel()
	c := newCollector("nor/broker/statistics")
	for topic, text := range map[string]string{
		prefix + "uptime": "21 seconds", prefix + "bytes/sent": "1234", prefix + "retained messages/count": "7",
		prefix + "version": "mosquitto version 2.0.11", prefix + "heap/current": "lots", prefix + "load/bytes/sent/1min": "12.5", "other/uptime": "1 seconds",
	} {
		c.received(topic, text)
	}
	want := `
# HELP vignette_mosquitto_bytes_sent_total Bytes sent since the start, of all packets.
# TYPE vignette_mosquitto_bytes_sent_total counter
vignette_mosquitto_bytes_sent_total{instance="nor/broker/statistics"} 1234
# HELP vignette_mosquitto_retained_messages Retained messages.
# TYPE vignette_mosquitto_retained_messages gauge
vignette_mosquitto_retained_messages{instance="nor/broker/statistics"} 7
# HELP vignette_mosquitto_up 1 with a connection to the broker, 0 without; the other figures are then the last that were known.
# TYPE vignette_mosquitto_up gauge
vignette_mosquitto_up{instance="nor/broker/statistics"} 0
# HELP vignette_mosquitto_uptime_seconds Time since the broker's start.
# TYPE vignette_mosquitto_uptime_seconds gauge
vignette_mosquitto_uptime_seconds{instance="nor/broker/statistics"} 21
`
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
