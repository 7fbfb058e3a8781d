// Package testcapture captures what tests send over loopback, and dissects it with tshark.
package testcapture

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testtool"
)

const (
	startTime = 10 * time.Second
	// notRepeated leaves out what TCP sent again, which tshark takes for malformed where it puts a message together.
	notRepeated = "not (tcp.analysis.retransmission or tcp.analysis.spurious_retransmission or tcp.analysis.keep_alive)"
)

// Capture is a running capture.
type Capture struct {
	t    testing.TB
	file string
	dump *exec.Cmd
}

// Start captures what a filter of pcap matches, such as "tcp port 80". It skips the test where the programs or the right to are missing.
func Start(t testing.TB, filter string) *Capture {
	t.Helper()
	testtool.Need(t, "tshark", "tcpdump")
	if os.Geteuid() != 0 {
		t.Skip("needs root, to capture on loopback")
	}
	c := &Capture{t: t, file: filepath.Join(t.TempDir(), "loopback.pcap")}
	c.dump = exec.Command("tcpdump", "-i", "lo", "-U", "--immediate-mode", "-B", "65536", "-s", "65600", "-Z", "root", "-w", c.file, filter)
	var said bytes.Buffer
	c.dump.Stderr = &said
	c.dump.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.dump.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(startTime); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(c.file); err == nil {
			return c
		}
		if time.Now().After(deadline) {
			_ = c.dump.Process.Kill()
			_ = c.dump.Wait() // ends the writing to said
			t.Fatalf("tcpdump does not start: %s", said.String())
		}
	}
}

// Dissect ends the capture, and returns what tshark reads in it. It fails the test if tshark finds a packet malformed.
// Options are tshark's, such as "-d", "tcp.port==8080,http" for a port's protocol.
func (c *Capture) Dissect(options ...string) string {
	c.t.Helper()
	time.Sleep(200 * time.Millisecond) // lets tcpdump read the rest; its buffer (64 MiB) has -s bytes for each packet
	_ = c.dump.Process.Signal(syscall.SIGINT)
	_ = c.dump.Wait()
	read := Read(c.t, c.file, append(options, "-Y", notRepeated)...)
	NoneOf(c.t, read, "Malformed", "malformed", "Expert Info (Error")
	return read
}

// HexDump is a datagram, or a segment of a stream, as Of takes it.
func HexDump(content []byte) string {
	var b strings.Builder
	for at := 0; at < len(content); at += 16 {
		fmt.Fprintf(&b, "%06x % x\n", at, content[at:min(at+16, len(content))])
	}
	fmt.Fprintf(&b, "%06x\n", len(content))
	return b.String()
}

// Of converts hex dumps to a capture, with options of text2pcap, and returns the capture's file. Without the programs it skips the test.
func Of(t testing.TB, dumps string, options ...string) string {
	t.Helper()
	testtool.Need(t, "tshark", "text2pcap")
	file := filepath.Join(t.TempDir(), "made.pcap")
	convert := exec.Command("text2pcap", append(append([]string{"-q"}, options...), "-", file)...)
	convert.Stdin = strings.NewReader(dumps)
	if out, err := convert.CombinedOutput(); err != nil {
		t.Fatalf("text2pcap: %v\n%s", err, out)
	}
	return file
}

// Read returns what tshark reads in a capture. Options are tshark's.
func Read(t testing.TB, file string, options ...string) string {
	t.Helper()
	out, err := exec.Command("tshark", append([]string{"-n", "-r", file, "-V"}, options...)...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	return string(out)
}

// NoneOf fails the test if one of the words is in what tshark read, and shows where.
func NoneOf(t testing.TB, read string, words ...string) {
	t.Helper()
	for _, bad := range words {
		if at := strings.Index(read, bad); at >= 0 {
			t.Errorf("tshark finds %q:\n%s", bad, read[max(0, at-1500):min(len(read), at+300)])
		}
	}
}
