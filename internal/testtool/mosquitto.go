package testtool

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
)

// Broker is a real Mosquitto on a port of the loopback.
type Broker struct {
	Port    int
	t       testing.TB
	config  string
	process *exec.Cmd
}

// Mosquitto starts a broker with these lines of mosquitto.conf, which say who may connect.
func Mosquitto(t testing.TB, lines ...string) *Broker {
	t.Helper()
	b := &Broker{t: t, Port: testport.Free(t), config: filepath.Join(t.TempDir(), "mosquitto.conf")}
	text := fmt.Sprintf("listener %d 127.0.0.1\nuser root\n%s\n", b.Port, strings.Join(lines, "\n"))
	if err := os.WriteFile(b.config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Start()
	t.Cleanup(b.Kill)
	return b
}

// Address is the broker's host:port.
func (b *Broker) Address() string { return fmt.Sprintf("127.0.0.1:%d", b.Port) }

// Start starts the broker again.
func (b *Broker) Start() {
	b.t.Helper()
	b.process = exec.Command(Need(b.t, "mosquitto"), "-c", b.config)
	if err := b.process.Start(); err != nil {
		b.t.Fatal(err)
	}
	Eventually(b.t, "the broker listens", func() bool {
		c, err := net.Dial("tcp", b.Address())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// Kill ends the broker at once.
func (b *Broker) Kill() {
	if b.process != nil {
		_ = b.process.Process.Kill()
		_ = b.process.Wait()
		b.process = nil
	}
}

// Stop ends the broker in order: it stores what it is to keep.
func (b *Broker) Stop() {
	ended := make(chan struct{})
	go func() {
		_ = b.process.Wait()
		close(ended)
	}()
	for { // Mosquitto forgets a signal that comes while it starts
		_ = b.process.Process.Signal(os.Interrupt)
		select {
		case <-ended:
			b.process = nil
			return
		case <-time.After(time.Second):
		}
	}
}
