package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// interrupted runs a command and sends it one Ctrl-C once it has taken what feed gives it.
func interrupted(t *testing.T, stdin io.Reader, feed func() error, args ...string) (code int, errs string) {
	t.Helper()
	caught := make(chan os.Signal, 8) // so that the signal does not end the test
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	var out, stderr bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- Main("test", append([]string{"vignette"}, args...), stdin, &out, &stderr) }()
	if err := feed(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-done:
		return code, stderr.String()
	case <-time.After(time.Minute):
		t.Fatal("it goes on after Ctrl-C")
		return 0, ""
	}
}

func TestOneCtrlCEndsWhatLeavesNothingBehind(t *testing.T) {
	stdin, typed := io.Pipe() // of which no end ever comes
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := syscall.Mkfifo(large, 0o600); err != nil {
		t.Fatal(err)
	}
	const object = "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: large}\n" +
		"spec: {format: synthetic, synthetic: {pattern: RandomWaypoint, platforms: 1000, duration: 24h}}\n"
	for _, c := range []struct {
		feed func() error
		args []string
	}{
		{func() error { _, err := io.WriteString(typed, object); return err }, []string{"validate", "-"}},
		{func() error { return os.WriteFile(large, []byte(object), 0o600) }, []string{"scenario", "inspect", large}},
	} {
		if code, errs := interrupted(t, stdin, c.feed, c.args...); code != exitDetached || strings.TrimSpace(errs) != "interrupted" {
			t.Errorf("%q: exit code %d, %q", c.args, code, errs)
		}
	}
}

// kubeconfigFor an API server.
func kubeconfigFor(t *testing.T, api http.Handler) string {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
		"users: [{name: a, user: {token: a}}]\nclusters: [{name: a, cluster: {server: \"" + server.URL + "\"}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// silentServer accepts connections and answers nothing. It returns a kubeconfig for it, and waits for the first request.
func silentServer(t *testing.T) (kubeconfig string, asked func() error) {
	t.Helper()
	requests, end := make(chan struct{}, 100), make(chan struct{})
	kubeconfig = kubeconfigFor(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests <- struct{}{}
		<-end
	}))
	t.Cleanup(func() { close(end) })
	return kubeconfig, func() error {
		select {
		case <-requests:
			return nil
		case <-time.After(time.Minute):
			return errors.New("the cluster was not asked")
		}
	}
}

func TestOneCtrlCEndsTheWaitForAClusterThatDoesNotAnswer(t *testing.T) {
	kubeconfig, asked := silentServer(t)
	if code, errs := interrupted(t, nil, asked, "status", "--kubeconfig", kubeconfig); code != exitDetached || strings.TrimSpace(errs) != "interrupted" {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func TestCompletionGivesUpOnAClusterThatDoesNotAnswer(t *testing.T) {
	kubeconfig, asked := silentServer(t)
	ended := make(chan []string)
	completions := [][]string{{"status", ""}, {"shell", ""}, {"set", "wan", ""}, {"results", "--namespace", ""}}
	for _, args := range completions {
		go func() {
			vignette(append([]string{"__complete", "--kubeconfig", kubeconfig}, args...)...)
			ended <- args
		}()
	}
	for range completions {
		if err := asked(); err != nil {
			t.Error(err)
		}
	}
	for i := range completions {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d go on", len(completions)-i, len(completions))
		}
	}
}
