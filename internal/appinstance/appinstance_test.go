package appinstance

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestAProcessThatIsQuietFromItsStartSendsNothing(t *testing.T) {
	t.Setenv(EnvQuiet, QuietFromStart)
	sending, stop := UntilQuiet(t.Context(), QuietOn(syscall.SIGUSR2))
	defer stop()
	if sending.Err() == nil {
		t.Error("it may send")
	}
}

func TestASignalMakesAProcessQuiet(t *testing.T) {
	sending, stop := UntilQuiet(t.Context(), QuietOn(syscall.SIGUSR2))
	defer stop()
	if sending.Err() != nil {
		t.Fatal("it may not send before the signal")
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	select {
	case <-sending.Done():
	case <-time.After(10 * time.Second):
		t.Error("it may still send")
	}
}

func TestNothingIsDueAtThePlannedStop(t *testing.T) {
	stop := time.Now().Add(-time.Second).Round(0)
	t.Setenv(EnvStop, strconv.FormatInt(stop.UnixNano(), 10))
	sleep, err := Sleep()
	if err != nil {
		t.Fatal(err)
	}
	if err := sleep(t.Context(), stop.Add(-time.Nanosecond)); err != nil {
		t.Errorf("due before the stop: %v; want it to be its time", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if sleep(ctx, stop) == nil {
		t.Error("due at the stop: it is its time; want the end of the context first")
	}
}

func TestWithoutAPlannedStopEverythingIsDue(t *testing.T) {
	t.Setenv(EnvStop, "")
	sleep, err := Sleep()
	if err == nil {
		err = sleep(t.Context(), time.Now())
	}
	if err != nil {
		t.Error(err)
	}
}

// options of an instance.
type options struct {
	Name    string          `json:"name"`
	Count   int             `json:"count"`
	ID      uint16          `json:"id"`
	Publish *publishOptions `json:"publish"`
}

type publishOptions struct {
	PeriodSeconds float64  `json:"periodSeconds"`
	Retain        bool     `json:"retain"`
	Topics        []string `json:"topics"`
}

func (options) Validate() error { return nil }

func TestAConfigurationThatCannotBeReadIsToldInWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	for content, want := range map[string]string{
		`{"name": 5}`:                           "name is a number: want text",
		`{"id": 70000}`:                         "id is 70000: want a whole number from 0 to 65535",
		`{"count": 5.5}`:                        "count is 5.5: want a whole number",
		`{"count": "five"}`:                     "count is a text: want a whole number",
		`{"publish": {"periodSeconds": "10s"}}`: "publish.periodSeconds is a text: want a number",
		`{"publish": {"retain": "yes"}}`:        "publish.retain is a text: want true or false",
		`{"publish": {"topics": "#"}}`:          "publish.topics is a text: want a list",
		`{"publish": "all"}`:                    "publish is a text: want an object in braces",
		`[]`:                                    "it is not one whole JSON object",
		"{\n\"name\": \"a\",\n\"count\" 5}":     "line 3 is no JSON: want one whole object in braces",
		`{"name": "a"`:                          "line 1 is no JSON: want one whole object in braces",
		"":                                      "line 1 is no JSON: want one whole object in braces",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfig[options](path); err == nil || err.Error() != path+": "+want {
			t.Errorf("%s: %v\nwant %s: %s", content, err, path, want)
		}
	}
}
