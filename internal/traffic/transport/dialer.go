package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/quietio"
	"vignette.dev/vignette/internal/trafficconfig"
)

const (
	// A link of 9.8 kbit/s, 100 ms and 10 % loss with a full queue needs most of this to connect.
	patience = 60 * time.Second
	// patienceWithOthers is for one of several brokers: a node that fell silent refuses nothing.
	patienceWithOthers = 15 * time.Second
	// startPatience is how long the first of several brokers may refuse a client that has never been connected: it may start at the same moment.
	startPatience = 3 * time.Second
	firstBackoff  = 50 * time.Millisecond
	lastBackoff   = 10 * time.Second
)

// Dialer opens a client's connections, one after the other: each call of Dial tells that the connection before failed, was refused by the
// broker or was lost. So each goes to the next of the brokers, and from the last one to the first. It begins with short pauses,
// as a broker that starts at the same moment is there in no time, and doubles them with each round over all brokers, up to 10 s.
// It is safe for use by several goroutines.
type Dialer struct {
	brokers  []string
	security trafficconfig.Security

	mu     sync.Mutex
	random *rand.Rand
	// dialed is when the first attempt was; the last one was to brokers[at].
	dialed time.Time
	at     int
	// known tells that a broker has accepted the client before.
	known bool
	// failures in a row, and the pause before the last attempt.
	failures int
	pause    time.Duration
	// connected is when the broker accepted the client; zero where it has not.
	connected time.Time
}

// NewDialer of a client's brokers. Errors are of addresses.
func NewDialer(s Setup) (*Dialer, error) {
	for _, broker := range s.Brokers() {
		if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("broker %q: want host:port", broker)
		}
	}
	d := &Dialer{brokers: s.Brokers(), random: rand.New(rand.NewPCG(uint64(s.Seed), 0x6d717474))}
	if s.Security != nil {
		d.security = *s.Security
	}
	return d, nil
}

// Patience is how long to wait for a broker that does not answer: to connect, and for what the protocol has to see that it is still there
// (keep-alive). It is shorter where there are others to go to.
func (d *Dialer) Patience() time.Duration {
	if len(d.brokers) > 1 {
		return patienceWithOthers
	}
	return patience
}

// Dial waits out the back-off and connects to the broker whose turn it is, by TLS where the security has certificates.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	plain, broker, err := d.DialPlain(ctx)
	if err != nil {
		return nil, err
	}
	config, err := d.TLS(broker)
	if err != nil {
		plain.Close()
		return nil, err
	}
	if config == nil {
		return plain, nil
	}
	handshake, cancel := context.WithTimeout(ctx, d.Patience())
	defer cancel()
	secure := tls.Client(plain, config)
	if err := secure.HandshakeContext(handshake); err != nil {
		plain.Close()
		return nil, fmt.Errorf("%s: TLS: %w", broker, err)
	}
	return secure, nil
}

// DialPlain is Dial without TLS, for protocols that begin it themselves (STARTTLS) with what TLS says. It tells the broker's host:port.
func (d *Dialer) DialPlain(ctx context.Context) (net.Conn, string, error) {
	broker, err := d.Next(ctx)
	if err != nil {
		return nil, "", err
	}
	// No proxy, whatever the environment says: the way to the broker is what is measured.
	conn, err := (&net.Dialer{Timeout: d.Patience()}).DialContext(ctx, "tcp", broker)
	if err != nil {
		return nil, broker, err
	}
	return quietio.NewConn(conn), broker, nil
}

// Next waits out the back-off and names the broker whose turn it is, for libraries that connect by themselves.
func (d *Dialer) Next(ctx context.Context) (string, error) {
	broker, pause := d.next(time.Now())
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
		return broker, nil
	}
}

// next moves on to the next broker and says how long to wait first, up to a fifth less than the back-off so that clients do not come together.
func (d *Dialer) next(now time.Time) (broker string, pause time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dialed.IsZero() {
		d.dialed = now
		return d.brokers[0], 0
	}
	// A connection that ended at once, such as that of a client whose name is taken, is a failure like others.
	if !d.connected.IsZero() && now.Sub(d.connected) > d.pause {
		d.failures = 0
	}
	d.connected = time.Time{}
	if len(d.brokers) > 1 && !d.known && now.Sub(d.dialed) < startPatience {
		d.pause = min(max(2*d.pause, firstBackoff), startPatience/6)
		return d.brokers[0], d.jittered()
	}
	d.failures++
	d.at = (d.at + 1) % len(d.brokers)
	d.pause = firstBackoff
	if rounds := d.failures / len(d.brokers); rounds > 0 && d.failures%len(d.brokers) == 0 {
		d.pause = min(firstBackoff<<min(rounds-1, 10), lastBackoff)
	}
	return d.brokers[d.at], d.jittered()
}

// jittered pause: up to a fifth shorter.
func (d *Dialer) jittered() time.Duration {
	return time.Duration(float64(d.pause) * (1 - 0.2*d.random.Float64()))
}

// Connected notes that the broker has accepted the client, for the next loss to be answered fast. It tells the broker's host:port, which is
// what Events.Connection wants.
func (d *Dialer) Connected() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connected, d.known = time.Now(), true
	return d.brokers[d.at]
}

// TLS configuration for a broker at host:port; nil for none. Its certificate must be for the address's host and signed by one of CAFile,
// which is read each time.
func (d *Dialer) TLS(broker string) (*tls.Config, error) {
	if d.security.CAFile == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(broker)
	if err != nil {
		return nil, fmt.Errorf("broker %q: want host:port", broker)
	}
	text, err := os.ReadFile(d.security.CAFile)
	if err != nil {
		return nil, fmt.Errorf("security: certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("security: %s has no certificate: want PEM", d.security.CAFile)
	}
	return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}, nil
}

// Login reads user name and password; both are empty where there are none. Clients read them for every connection.
func (d *Dialer) Login() (username, password string, err error) {
	read := func(path string) string {
		if path == "" {
			return ""
		}
		text, failed := os.ReadFile(path)
		err = errors.Join(err, failed)
		return strings.TrimRight(string(text), "\r\n")
	}
	username, password = read(d.security.UsernameFile), read(d.security.PasswordFile)
	if err != nil {
		return "", "", fmt.Errorf("security: login: %w", err)
	}
	return username, password, nil
}
