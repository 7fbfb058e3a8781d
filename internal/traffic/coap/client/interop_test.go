package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testjava"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/request"
)

// others are programs of other implementations that serve and ask as testdata says.
var others = map[string]func(t *testing.T) []string{"aiocoap": aiocoap, "Californium": californium}

func aiocoap(t *testing.T) []string {
	t.Helper()
	python, err := filepath.Abs("../../../../.venv/bin/python")
	if err == nil {
		err = exec.Command(python, "-c", "import aiocoap").Run()
	}
	if err != nil {
		t.Skip("the Python package aiocoap is not there: hack/python makes the environment that has it")
	}
	return []string{python, "-u", "testdata/aiocoap_peer.py"}
}

func californium(t *testing.T) []string {
	t.Helper()
	libraries, _ := testjava.Jars(t, "testdata/californium.xml")
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", testjava.Compile(t, libraries, "testdata/CaliforniumPeer.java"), "CaliforniumPeer"}
}

// start runs a program until the test ends, and waits until it has said a word.
func start(t *testing.T, ready string, command ...string) *syncbuffer.Buffer {
	t.Helper()
	output := &syncbuffer.Buffer{}
	program := exec.Command(command[0], command[1:]...)
	program.Stdout, program.Stderr = output, output
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", command, output)
		}
	})
	says(t, output, ready)
	return output
}

func says(t *testing.T, output *syncbuffer.Buffer, what string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(output.String(), what); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in:\n%s", what, output)
		}
	}
}

// run runs a program to its end and returns what it writes.
func run(t *testing.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// resources has what the other programs' servers have.
func resources(at time.Time, r request.Request) request.Response {
	if r.Path == "/missing" {
		return request.Response{Status: 404}
	}
	return echo(at, r)
}

var transports = map[string]request.Open{"coap": Open, "coap+tcp": OpenTCP}

func TestOthersAskOurServer(t *testing.T) {
	t.Parallel()
	want := `posted 10 2.04 true 42
posted 1024 2.04 true 42
posted 5000 2.04 true 42
state 2.05 state of /state
missing 4.04
`
	for name, other := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := other(t)
			for scheme, open := range transports {
				_, at := real(t, open, func(s *request.Setup) { s.Handler = resources })
				if got := run(t, append(program, "ask", scheme+"://"+at)...); got != want {
					t.Errorf("%s: %s says\n%swant\n%s", scheme, name, got, want)
				}
			}
		})
	}
}

func TestOurClientAsksOthers(t *testing.T) {
	t.Parallel()
	for name, other := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, port := other(t), fmt.Sprint(testport.Free(t))
			start(t, "ready", append(program, "serve", "127.0.0.1", port)...)
			for scheme, open := range transports {
				t.Run(scheme, func(t *testing.T) {
					client, _ := real(t, open, nil)
					askAll(t, client, "127.0.0.1:"+port)
					if scheme == "coap" {
						client, _ = real(t, open, func(s *request.Setup) { s.CoAP.BlockBytes, s.CoAP.NonConfirmable = 64, true })
						askAll(t, client, "127.0.0.1:"+port)
					}
				})
			}
		})
	}
}

// askAll asks a server of testdata everything that it has.
func askAll(t *testing.T, client request.Peer, at string) {
	t.Helper()
	for _, n := range []int{0, 1, 1024, 1025, 5000, 40_000} {
		r, _, err := client.Do(t.Context(), at, request.Request{Path: "/messages", Body: body(n), ContentType: "application/octet-stream"}, request.Events{})
		if err != nil || !bytes.Equal(r.Body, body(n)) || r.Status != 204 {
			t.Errorf("%d bytes: status %d, %d bytes, %v", n, r.Status, len(r.Body), err)
		}
	}
	if r, _, err := client.Do(t.Context(), at, request.Request{Path: "/state"}, request.Events{}); err != nil || string(r.Body) != "state of /state" {
		t.Errorf("%q, %v", r.Body, err)
	}
	if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/missing"}, request.Events{}); request.ReasonOf(err) != request.Rejected {
		t.Errorf("a path that is not there: %v", err)
	}
}

// libcoap is a program of Debian's libcoap3-bin.
func libcoap(t *testing.T, name string) string {
	t.Helper()
	path := testtool.Need(t, name+"-notls")
	return path
}

func TestLibcoapsClientAsksOurServer(t *testing.T) {
	t.Parallel()
	client := libcoap(t, "coap-client")
	file := filepath.Join(t.TempDir(), "body")
	text := bytes.Repeat([]byte("0123456789"), 500)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for scheme, open := range transports {
		_, at := real(t, open, func(s *request.Setup) { s.Handler = resources })
		uri := scheme + "://" + at
		for _, c := range []struct {
			want string
			args []string
		}{
			{"state of /state", []string{"-m", "get", uri + "/state"}},
			{"state of /state?a=b", []string{"-m", "get", "-N", uri + "/state?a=b"}},
			{string(text), []string{"-m", "post", "-t", "text/plain", "-f", file, uri + "/messages"}},
			{string(text), []string{"-m", "put", "-b", "64", "-f", file, uri + "/messages"}},
			{"4.04", []string{"-m", "get", uri + "/missing"}},
			{"4.05 want GET, POST or PUT", []string{"-m", "delete", uri + "/state"}},
		} {
			if got := strings.TrimSpace(run(t, append([]string{client}, c.args...)...)); got != c.want {
				t.Errorf("%s: coap-client %s says %.100q; want %.100q", scheme, c.args, got, c.want)
			}
		}
		if open := scheme == "coap"; open {
			if got := run(t, client, "-l", "2,4", "-m", "post", "-e", "lost", uri+"/messages"); strings.TrimSpace(got) != "lost" {
				t.Errorf("with losses coap-client says %q", got)
			}
		}
	}
}

func TestOurClientAsksLibcoapsServer(t *testing.T) {
	t.Parallel()
	program, port := libcoap(t, "coap-server"), fmt.Sprint(testport.Free(t))
	at := "127.0.0.1:" + port
	start(t, "created TCP", program, "-v", "7", "-A", "127.0.0.1", "-p", port, "-d", "10")
	for scheme, open := range transports {
		for _, blockBytes := range []int{1024, 64} {
			ours, _ := real(t, open, func(s *request.Setup) { s.CoAP.BlockBytes = blockBytes })
			// It stores what is posted.
			if _, _, err := ours.Do(t.Context(), at, request.Request{Path: "/long", Body: body(5000 + blockBytes)}, request.Events{}); err != nil {
				t.Errorf("%s: %v", scheme, err)
			}
			r, _, err := ours.Do(t.Context(), at, request.Request{Path: "/long"}, request.Events{})
			if err != nil || !bytes.Equal(r.Body, body(5000+blockBytes)) {
				t.Errorf("%s: %d bytes, %v", scheme, len(r.Body), err)
			}
			// Its answer is a message of its own, after a second.
			if r, _, err = ours.Do(t.Context(), at, request.Request{Path: "/async?1"}, request.Events{}); err != nil || string(r.Body) != "done" {
				t.Errorf("%s: %q, %v", scheme, r.Body, err)
			}
			if _, _, err = ours.Do(t.Context(), at, request.Request{Path: "/missing"}, request.Events{}); request.ReasonOf(err) != request.Rejected {
				t.Errorf("%s: a path that is not there: %v", scheme, err)
			}
		}
	}
}
