package rabbitmq_test

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

	"vignette.dev/vignette/internal/trafficconfig"
)

// It captures clients of QoS 1 from their first packet to their last. For STOMP Wireshark has no dissector.
func TestTsharkDissectsThePacketsOfAMQPClients(t *testing.T) {
	requirePrograms(t, "tshark", "tcpdump")
	if os.Geteuid() != 0 {
		t.Skip("needs root, to capture on loopback")
	}
	b := startOpen(t)
	file := filepath.Join(t.TempDir(), "loopback.pcap")
	dump := exec.Command("tcpdump", "-i", "lo", "-U", "--immediate-mode", "-B", "65536", "-s", "65600", "-Z", "root", "-w", file, "tcp", "port", fmt.Sprint(b.ports.amqp))
	var said bytes.Buffer
	dump.Stderr = &said
	dump.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	if !reached(func() bool { _, err := os.Stat(file); return err == nil }) {
		t.Fatalf("tcpdump does not start: %s", said.String())
	}
	s := open(t, b.subscriber(trafficconfig.ProtocolAMQP, "nor/dissected", 1, "dissected/#")).waitConnected(t)
	p := open(t, b.publisher(trafficconfig.ProtocolAMQP, "prt/dissected", 1)).waitConnected(t)
	const messages = 20
	for i := range messages {
		if err := p.Publish("dissected/x", bytes.Repeat([]byte{'a', 0, 0xff}, i*500)); err != nil {
			t.Fatal(err)
		}
	}
	reached(func() bool { return len(s.receivedMessages()) == messages })
	p.close()
	s.close()
	time.Sleep(200 * time.Millisecond) // lets tcpdump read the rest; its buffer (64 MiB) has -s bytes for each packet
	_ = dump.Process.Signal(syscall.SIGINT)
	_ = dump.Wait()
	out, err := exec.Command("tshark", "-n", "-r", file, "-V", "-d", fmt.Sprintf("tcp.port==%d,amqp", b.ports.amqp)).Output()
	if err != nil {
		t.Fatal(err)
	}
	read := string(out)
	for _, bad := range []string{"Malformed", "malformed", "Expert Info (Error"} {
		if at := strings.Index(read, bad); at >= 0 {
			t.Errorf("tshark finds %q:\n%s", bad, read[max(0, at-1500):min(len(read), at+300)])
		}
	}
	for want, times := range map[string]int{
		"Method: Publish (40)": messages, "Method: Deliver (60)": messages, "Method: Ack (80)": messages, "Method: Select (10)": 1, "Method: Close (50)": 2,
	} {
		if n := strings.Count(read, want); n < times {
			t.Errorf("tshark finds %q %d times; want %d at least", want, n, times)
		}
	}
}
