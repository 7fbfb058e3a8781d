package rabbitmq_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/core/credentials"
	"vignette.dev/vignette/internal/traffic/protocol"
)

// secrets writes the files of the operator's Secret.
func secrets(dir string) error {
	files, err := credentials.Make("test", []string{"localhost"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, time.Now())
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// security is that of a client with all files.
func (b *broker) security() *protocol.Security {
	file := func(name string) string { return filepath.Join(b.dir, "security", name) }
	return &protocol.Security{CAFile: file("ca.crt"), UsernameFile: file("username"), PasswordFile: file("password")}
}

func TestWithTLSAndAPasswordOnlyClientsWithBothAreServed(t *testing.T) {
	start(t)
	b := &secure
	b.wait(t)
	for _, name := range append([]string{"mqtt"}, protocols...) {
		t.Run(name, func(t *testing.T) {
			subscriber, publisher := b.subscriber(name, "nor/secure", 1, name+"/#"), b.publisher(name, "prt/secure", 1)
			subscriber.Security, publisher.Security = b.security(), b.security()
			s, p := open(t, subscriber).waitConnected(t), open(t, publisher).waitConnected(t)
			if !reached(func() bool {
				_ = p.Publish(name+"/x", []byte("secret"))
				return len(s.receivedMessages()) > 0
			}) {
				t.Errorf("the subscriber heard nothing: %v", s.stateChanges())
			}

			stranger, guest := b.publisher(name, "prt/stranger", 1), b.publisher(name, "prt/guest", 1)
			guest.Security = &protocol.Security{CAFile: b.security().CAFile}
			for what, c := range map[string]*client{"without TLS": open(t, stranger), "without a password": open(t, guest)} {
				if !reached(func() bool { return len(c.stateChanges()) > 0 }) || slices.ContainsFunc(c.stateChanges(), func(s string) bool { return strings.HasPrefix(s, "up true") }) {
					t.Errorf("a client %s is served: %v", what, c.stateChanges())
				}
			}
		})
	}
}
