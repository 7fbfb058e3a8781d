package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/quietio"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/wording"
)

const (
	// A link with 9.8 kbit/s, 100 ms, 10 % loss and a full queue needs most of this to connect.
	timeout = 60 * time.Second
	// timeoutWithOthers is for one of several brokers: a silent node refuses nothing.
	timeoutWithOthers = 15 * time.Second
	// startRefusalTimeout is how long the first of several brokers may refuse a new client, as it may start at the same time.
	startRefusalTimeout = 3 * time.Second
	firstBackoff        = 50 * time.Millisecond
	lastBackoff         = 10 * time.Second
)

// Dialer opens a client's connections, one after the other. Each call of Dial means that the last connection failed, was refused by the
// broker or was lost. So each call tries the next broker, and after the last one the first. Pauses start short,
// for a broker that starts at the same time, and double with each round over all brokers, up to 10 s.
// It is safe for use by several goroutines.
type Dialer struct {
	brokers  []string
	security protocol.Security

	mu     sync.Mutex
	random *rand.Rand
	// dialed is the time of the first attempt. The last one was to brokers[at].
	dialed time.Time
	at     int
	// known: a broker has accepted the client before.
	known bool
	// Consecutive failures, and the pause before the last attempt.
	failures int
	pause    time.Duration
	// connected is when the broker accepted the client; zero if it did not.
	connected time.Time
}

// NewDialer returns a Dialer for a client's brokers. Its errors concern addresses.
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

// Timeout is how long to wait for a silent broker: to connect, and for the protocol's sign of life
// (keep-alive). It is shorter with several brokers.
func (d *Dialer) Timeout() time.Duration {
	if len(d.brokers) > 1 {
		return timeoutWithOthers
	}
	return timeout
}

// Dial waits for the back-off and connects to the next broker, by TLS if the security has certificates.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	plain, broker, err := d.DialPlain(ctx)
	if err != nil {
		return nil, err
	}
	return d.Secure(ctx, plain, broker)
}

// Secure starts TLS on a connection to a broker at host:port, if the security has certificates. It closes the connection after an error.
func (d *Dialer) Secure(ctx context.Context, plain net.Conn, broker string) (net.Conn, error) {
	config, err := d.TLS(broker)
	if err != nil {
		plain.Close()
		return nil, err
	}
	if config == nil {
		return plain, nil
	}
	handshake, cancel := context.WithTimeout(ctx, d.Timeout())
	defer cancel()
	secure := tls.Client(plain, config)
	if err := secure.HandshakeContext(handshake); err != nil {
		plain.Close()
		return nil, fmt.Errorf("%s: TLS: %w", broker, err)
	}
	return secure, nil
}

// DialPlain is Dial without TLS, for protocols that start TLS themselves (STARTTLS). It also returns the broker's host:port.
func (d *Dialer) DialPlain(ctx context.Context) (net.Conn, string, error) {
	broker, err := d.Next(ctx)
	if err != nil {
		return nil, "", err
	}
	conn, err := d.Connect(ctx, broker)
	return conn, broker, err
}

// Connect connects to a broker at host:port at once. It never uses a proxy from the environment: the direct path is measured.
// TCP's keep-alive is off, as it would load the network; protocols have their own.
func (d *Dialer) Connect(ctx context.Context, broker string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: d.Timeout(), KeepAlive: -1}).DialContext(ctx, "tcp", broker)
	if err != nil {
		return nil, err
	}
	return quietio.NewConn(conn), nil
}

// Next waits for the back-off and returns the next broker, for libraries that connect themselves.
func (d *Dialer) Next(ctx context.Context) (string, error) {
	broker, pause := d.next(time.Now())
	if !clock.Pause(ctx, pause) {
		return "", ctx.Err()
	}
	return broker, nil
}

// next moves to the next broker and returns the wait before: the back-off less up to a fifth, so that clients do not collide.
func (d *Dialer) next(now time.Time) (broker string, pause time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dialed.IsZero() {
		d.dialed = now
		return d.brokers[0], 0
	}
	// A connection that ends at once, such as for a name in use, is a failure, too.
	if !d.connected.IsZero() && now.Sub(d.connected) > d.pause {
		d.failures = 0
	}
	d.connected = time.Time{}
	if len(d.brokers) > 1 && !d.known && now.Sub(d.dialed) < startRefusalTimeout {
		d.pause = min(max(2*d.pause, firstBackoff), startRefusalTimeout/6)
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

// jittered returns a pause that is up to a fifth shorter.
func (d *Dialer) jittered() time.Duration {
	return time.Duration(float64(d.pause) * (1 - 0.2*d.random.Float64()))
}

// Connected records that the broker accepted the client, so that the next pause is short. It returns the broker's host:port, which
// Events.Connection needs.
func (d *Dialer) Connected() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connected, d.known = time.Now(), true
	return d.brokers[d.at]
}

// TLS returns the configuration for a broker at host:port; nil for none. The certificate must name the host and be signed by CAFile,
// which is read each time.
func (d *Dialer) TLS(broker string) (*tls.Config, error) {
	if d.security.CAFile == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(broker)
	if err != nil {
		return nil, fmt.Errorf("broker %q: want host:port", broker)
	}
	text, err := wording.ReadFile(d.security.CAFile)
	if err != nil {
		return nil, fmt.Errorf("security: certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("security: %s has no certificate: want PEM", d.security.CAFile)
	}
	return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}, nil
}

// Login reads user name and password, empty if there are none. Clients read them for every connection.
func (d *Dialer) Login() (username, password string, err error) {
	if username, password, err = ReadLogin(d.security.UsernameFile, d.security.PasswordFile); err != nil {
		err = fmt.Errorf("security: %w", err)
	}
	return username, password, err
}

// ReadLogin reads a user name and its password, each empty without a file.
func ReadLogin(usernameFile, passwordFile string) (username, password string, err error) {
	read := func(path string) string {
		if path == "" {
			return ""
		}
		text, failed := wording.ReadFile(path)
		err = errors.Join(err, failed)
		return strings.TrimRight(string(text), "\r\n")
	}
	username, password = read(usernameFile), read(passwordFile)
	if err != nil {
		return "", "", fmt.Errorf("login: %w", err)
	}
	return username, password, nil
}

// LoginOrGuest is Login, or the user name and password of RabbitMQ without security.
func (d *Dialer) LoginOrGuest() (username, password string, err error) {
	if username, password, err = d.Login(); err == nil && username == "" {
		username, password = "guest", "guest"
	}
	return username, password, err
}
