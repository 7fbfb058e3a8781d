package client

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/xmpp"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// otherClient is an independent XMPP client: Debian's slixmpp.
type otherClient struct {
	input io.Writer
	lines chan string
}

func startOther(t *testing.T, broker, ca, user, password string, topics ...string) *otherClient {
	t.Helper()
	const python = "/usr/bin/python3" // Debian's, which has Debian's packages
	if exec.Command(python, "-c", "import slixmpp").Run() != nil {
		t.Skip("slixmpp is not installed (Debian package python3-slixmpp)")
	}
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, filepath.Join("testdata", "other_client.py"), host, port, ca, user, password, strings.Join(topics, ","))
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	o := &otherClient{lines: make(chan string, 100)}
	if o.input, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	go func() {
		defer close(o.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			o.lines <- scanner.Text()
		}
	}()
	o.want(t, "ready")
	return o
}

// want waits for lines in any order.
func (o *otherClient) want(t *testing.T, lines ...string) {
	t.Helper()
	var got []string
	for deadline := time.After(10 * time.Second); len(got) < len(lines); {
		select {
		case line, ok := <-o.lines:
			if !ok {
				t.Fatalf("the other client ended after %q; want %q", got, lines)
			}
			got = append(got, line)
		case <-deadline:
			t.Fatalf("the other client said %q; want %q", got, lines)
		}
	}
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		t.Errorf("the other client said %q; want %q", got, lines)
	}
}

func TestAnotherProgramsClientAndOursHearEachOther(t *testing.T) {
	t.Parallel()
	s := ownServer(t, nil) // it has no nodes yet
	says := connect(t, publisher("other-p", s.address, "other/ours"))
	says.send(t, "other/ours", "nobody hears it")
	o := startOther(t, s.address, "-", xmpp.Account, xmpp.Account, "other/ours")
	// Nobody announces its nodes: the client finds them at its next discovery.
	hears := openPeer(t, setup("other-s", s.address, "other/theirs/#"), times{discovery: 200 * time.Millisecond})
	hears.waitUp(t)
	says.send(t, "other/ours", `{"a": "<ä & 'ö'>", "b": "text enough for base64 to be longer"}`)
	says.send(t, "other/ours", "\xff\x00")
	o.want(t, `other/ours {"a": "<ä & 'ö'>", "b": "text enough for base64 to be longer"}`, "other/ours ff00")
	fmt.Fprintln(o.input, "other/theirs/x the first makes the node")
	o.want(t, "published other/theirs/x")
	hears.waitSubscribed(t, "other/theirs/x")
	fmt.Fprintln(o.input, `other/theirs/x <hello> & "ü"`)
	o.want(t, "published other/theirs/x")
	hears.wantOnce(t, `other/theirs/x <hello> & "ü"`)
}

func TestAnotherProgramsClientAndOursHearEachOtherByTLS(t *testing.T) {
	t.Parallel()
	s := ownServer(t, &v1alpha1.Security{TLS: true, Password: true})
	c := setup("tls", s.address, "tls/theirs")
	file := func(name string) string { return filepath.Join(s.dir, name) }
	c.Security = &protocol.Security{CAFile: file("ca.crt"), UsernameFile: file("username"), PasswordFile: file("password")}
	ours := connect(t, c)
	ours.waitSubscribed(t, "tls/theirs")
	user, password, err := ours.dialer.Login()
	if err != nil {
		t.Fatal(err)
	}
	o := startOther(t, s.address, file("ca.crt"), user, password, "tls/theirs")
	ours.send(t, "tls/theirs", "from ours")
	fmt.Fprintln(o.input, "tls/theirs from theirs")
	ours.wantOnce(t, "tls/theirs from ours", "tls/theirs from theirs")
}

func TestTsharkDissectsEveryPacket(t *testing.T) {
	t.Parallel()
	s := ownServer(t, nil) // nobody else uses this server
	testtool.Need(t, "tshark", "tcpdump")
	_, port, _ := net.SplitHostPort(s.address)
	path := filepath.Join(t.TempDir(), "xmpp.pcap")
	capture := exec.Command("tcpdump", "-i", "lo", "-U", "-w", path, "--immediate-mode", "tcp port "+port)
	stderr, err := capture.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := capture.Start(); err != nil {
		t.Fatal(err)
	}
	defer capture.Process.Kill()
	line, _ := bufio.NewReader(stderr).ReadString('\n')
	if !strings.Contains(line, "listening") {
		t.Skipf("tcpdump may not capture here: %s", line)
	}
	hears, says := connect(t, setup("shark-s", s.address, "shark/#")), connect(t, publisher("shark-p", s.address, "shark/a"))
	hears.waitSubscribed(t, "shark/a")
	for name, content := range contents() {
		if name != "large text" {
			says.send(t, "shark/a", string(content))
		}
	}
	eventually(t, hears.report, func() bool { return len(hears.got()) == len(contents())-1 })
	says.Close(t.Context())
	hears.Close(t.Context())
	_ = capture.Process.Signal(syscall.SIGTERM)
	_ = capture.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, "tshark", "-r", path, "-d", "tcp.port=="+port+",xmpp", "-T", "fields",
		"-e", "frame.protocols", "-e", "_ws.malformed", "-e", "tcp.payload").Output()
	if err != nil {
		t.Fatal(err)
	}
	// The dissector reads beyond the closing tag of a stream, for Prosody too, and calls that malformed.
	end := hex.EncodeToString([]byte("</stream:stream>"))
	dissected := 0
	for frame := range strings.Lines(string(output)) {
		fields := strings.Split(strings.TrimSuffix(frame, "\n"), "\t")
		if strings.Contains(fields[0], "xmpp") {
			dissected++
		}
		if fields[1] != "" && fields[2] != end {
			t.Errorf("tshark finds a malformed packet: %s", frame)
		}
	}
	if dissected < len(contents()) {
		t.Errorf("tshark dissected %d packets; want %d at least", dissected, len(contents()))
	}
}
