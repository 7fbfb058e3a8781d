package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

// serveEnv makes the test's own program a server of the archive that it names.
const serveEnv = "VIGNETTE_TEST_SERVE"

func TestMain(m *testing.M) {
	dir := os.Getenv(serveEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := New(Config{Dir: dir, Authenticator: everybody, Policy: Policy{OperatorUser: operatorUser, RadiodUser: radiodUser}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("http://" + listener.Addr().String())
	fmt.Fprintln(os.Stderr, http.Serve(listener, s))
	os.Exit(1)
}

// process is a server in a process of its own, which can be killed.
type process struct {
	command *exec.Cmd
	url     string
}

func startProcess(t *testing.T, dir string) process {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), serveEnv+"="+dir)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return process{command, line[:len(line)-1]}
}

func (p process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

func TestNothingIsLostWhenTheServerIsKilledAgainAndAgain(t *testing.T) {
	dir := t.TempDir()
	var text bytes.Buffer
	const events = 60_000
	for i := range events {
		text.WriteString(event("sent", i+1))
	}
	ctx := context.Background()
	token := func(name string) client.TokenSource { return func() (string, error) { return name, nil } }
	offset := int64(0)
	kills := 0
	for offset < int64(text.Len()) {
		server := startProcess(t, dir)
		if _, err := client.New(server.url, nil, token("operator")).PutPlan(ctx, examplePlan()); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(5+7*kills)*time.Millisecond, func() { _ = server.command.Process.Kill() })
		offset = ship(ctx, client.New(server.url, nil, token("nor")), text.Bytes(), offset)
		if timer.Stop() {
			server.kill()
		} else {
			_ = server.command.Wait()
			kills++
		}
		if kills > 200 {
			t.Fatal("the log never became whole")
		}
	}
	if kills == 0 {
		t.Fatal("the server was never killed while it archived: the test proves nothing")
	}
	server := startProcess(t, dir)
	defer server.kill()
	state, err := client.New(server.url, nil, token("operator")).State(ctx, runUID)
	if err != nil || state.Counters.Sent != events {
		t.Fatalf("counters %+v, %v; want %d sent after %d kills", state.Counters, err, events, kills)
	}
	f, err := client.New(server.url, nil, token("operator")).File(ctx, runUID, "logs/nor/bft/messages-1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, text.Bytes()) {
		t.Fatalf("archived %d bytes, %v; want the same %d", len(got), err, text.Len())
	}
}

// ship sends a log as an agent does until the server is gone or has it all, and returns what was acknowledged.
func ship(ctx context.Context, c *client.Client, text []byte, offset int64) int64 {
	for offset < int64(len(text)) {
		end := min(offset+100_003, int64(len(text)))
		size, err := appendLog(ctx, c, "bft", "messages-1.jsonl", offset, text[offset:end])
		var answer *client.Error
		switch {
		case err == nil:
			offset = size
			_ = c.Report(ctx, runapi.AgentReport{App: "bft", Phase: runapi.AgentRunning, Restarts: int(offset)})
		case errors.As(err, &answer) && answer.Size != nil:
			offset = *answer.Size
		default:
			return offset
		}
	}
	return offset
}
