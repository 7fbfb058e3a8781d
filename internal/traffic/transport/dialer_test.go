package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/trafficconfig"
)

func dialerOf(t *testing.T, security *protocol.Security, brokers ...string) *Dialer {
	t.Helper()
	d, err := NewDialer(Setup{Config: trafficconfig.Config{Broker: brokers[0], Failover: brokers[1:], Security: security, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBackoffBeginsShortDoublesEachRoundAndIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		brokers []string
		want    []time.Duration
	}{
		"one broker":  {[]string{"a:1"}, []time.Duration{0, 50, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}},
		"two brokers": {[]string{"a:1", "b:1"}, []time.Duration{0, 50, 50, 50, 100, 50, 200, 50, 400, 50, 800}},
	} {
		d, now := dialerOf(t, nil, c.brokers...), time.Now()
		for i, want := range c.want {
			broker, got := d.next(now)
			now = now.Add(startRefusalTimeout)
			if want *= time.Millisecond; got > want || got < want*8/10 || broker != c.brokers[i%len(c.brokers)] {
				t.Errorf("%s: attempt %d to %s after %v; want to %s after %v less a fifth at most", name, i, broker, got, c.brokers[i%len(c.brokers)], want)
			}
		}
	}
}

func TestABrokerThatStartsWithItsClientHasTimeBeforeTheNextIsTaken(t *testing.T) {
	t.Parallel()
	d, begin := dialerOf(t, nil, "a:1", "b:1"), time.Now()
	now, attempts := begin, 0
	for ; ; attempts++ {
		broker, pause := d.next(now)
		if now = now.Add(pause); broker == "b:1" {
			break
		}
	}
	if took := now.Sub(begin); took < startRefusalTimeout || took > 2*startRefusalTimeout || attempts < 8 {
		t.Errorf("the first broker was left after %v and %d attempts; want about %v", took, attempts, startRefusalTimeout)
	}
	known := dialerOf(t, nil, "a:1", "b:1")
	known.next(begin)
	known.Connected()
	if broker, pause := known.next(begin.Add(time.Second)); broker != "b:1" || pause > firstBackoff {
		t.Errorf("after a loss to %s in %v; want to the next at once", broker, pause)
	}
}

func TestALostConnectionIsAnsweredFastAndOneThatEndsAtOnceIsNot(t *testing.T) {
	t.Parallel()
	d := dialerOf(t, nil, "a:1")
	for range 8 {
		d.next(time.Now())
	}
	d.Connected()
	if _, pause := d.next(time.Now().Add(time.Minute)); pause > firstBackoff {
		t.Errorf("pause of %v after a connection of a minute; want up to %v", pause, firstBackoff)
	}
	var last time.Duration
	for range 12 {
		d.Connected()
		_, last = d.next(time.Now())
	}
	if last < lastBackoff*8/10 {
		t.Errorf("pause of %v after twelve connections that ended at once; want %v", last, lastBackoff)
	}
}

func TestTheNextBrokerIsTakenWhenOneCannotBeReachedOrIsLost(t *testing.T) {
	t.Parallel()
	first, second := listen(t, nil), listen(t, nil)
	d := dialerOf(t, nil, first.Addr().String(), "127.0.0.1:1", second.Addr().String())
	var reached []string
	for len(reached) < 5 {
		conn, err := d.Dial(context.Background())
		if err != nil {
			reached = append(reached, "refused")
			continue
		}
		reached = append(reached, conn.RemoteAddr().String())
		if d.Connected() != conn.RemoteAddr().String() {
			t.Errorf("connected to %s; want %s", d.Connected(), conn.RemoteAddr())
		}
		conn.Close()
	}
	want := []string{first.Addr().String(), "refused", second.Addr().String(), first.Addr().String(), "refused"}
	if !slices.Equal(reached, want) {
		t.Errorf("reached %q; want %q", reached, want)
	}
}

func TestAnIdleConnectionLoadsNoNetwork(t *testing.T) {
	t.Parallel()
	listener := testport.Listen(t)
	conn, err := dialerOf(t, nil, listener.Addr().String()).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if due := testport.KeepAlive(t, 0, listener.Addr().(*net.TCPAddr).Port); due != 0 {
		t.Errorf("TCP's keep-alive is due in %v; want it off", due)
	}
}

func TestADialerThatIsNoLongerNeededStopsWaiting(t *testing.T) {
	t.Parallel()
	d := dialerOf(t, nil, "127.0.0.1:1")
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := d.Dial(ctx); err == nil {
			t.Fatal("connected to nothing")
		}
	}
}

func TestTLSChecksTheBrokersNameAndWhoSignedIt(t *testing.T) {
	t.Parallel()
	good, file := certificate(t, "127.0.0.1")
	foreign, _ := certificate(t, "127.0.0.1")
	other, otherFile := certificate(t, "nor")
	expired, expiredFile := certificate(t, "127.0.0.1", func(c *x509.Certificate) { c.NotAfter = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) })
	for name, c := range map[string]struct {
		certificate tls.Certificate
		file, want  string
	}{
		"right":                     {good, file, ""},
		"of another authority":      {foreign, file, "TLS: the broker's certificate is signed by another authority than the experiment's"},
		"for another name":          {other, otherFile, "TLS: the broker's certificate is not for 127.0.0.1"},
		"that has expired":          {expired, expiredFile, "TLS: the broker's certificate holds from 0001-01-01T00:00:00Z to 2001-01-01T00:00:00Z, and not now"},
		"without one":               {tls.Certificate{}, file, "TLS: the broker refuses it: "},
		"without a file":            {good, file + "-missing", "-missing: there is no such file"},
		"with a file of other text": {good, "dialer_test.go", "want PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := listen(t, &tls.Config{Certificates: []tls.Certificate{c.certificate}})
			conn, err := dialerOf(t, &protocol.Security{CAFile: c.file}, broker.Addr().String()).Dial(context.Background())
			if err == nil {
				conn.Close()
			}
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(Words(err), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

func TestABrokerWithoutTLSIsToldAsSuch(t *testing.T) {
	t.Parallel()
	_, file := certificate(t, "127.0.0.1")
	plain := testport.Listen(t)
	go func() {
		if conn, err := plain.Accept(); err == nil {
			_, _ = conn.Write([]byte("220 hello"))
		}
	}()
	_, err := dialerOf(t, &protocol.Security{CAFile: file}, plain.Addr().String()).Dial(t.Context())
	if want := plain.Addr().String() + ": TLS: the broker answers without TLS: want its port for TLS"; err == nil || Words(err) != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestLoginIsReadFromFilesEachTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	security := protocol.Security{UsernameFile: filepath.Join(dir, "username"), PasswordFile: filepath.Join(dir, "password")}
	d := dialerOf(t, &security, "nor:1883")
	if _, _, err := d.Login(); err == nil || !strings.Contains(err.Error(), "username") || !strings.Contains(err.Error(), "password") {
		t.Errorf("%v; want an error that names both files", err)
	}
	for path, text := range map[string]string{security.UsernameFile: "vignette\n", security.PasswordFile: " se cret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if name, password, err := d.Login(); name != "vignette" || password != " se cret" || err != nil {
		t.Errorf("%q, %q, %v", name, password, err)
	}
	if name, password, err := dialerOf(t, nil, "nor:1883").Login(); name != "" || password != "" || err != nil {
		t.Errorf("%q, %q, %v; want none", name, password, err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"nor", ":1883", "nor:", ""} {
		if _, err := NewDialer(Setup{Config: trafficconfig.Config{Broker: "nor:1883", Failover: []string{bad}}}); err == nil || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("%q: %v; want an error that says host:port", bad, err)
		}
	}
}

// listen accepts connections, and makes the handshake where there is a configuration.
func listen(t *testing.T, config *tls.Config) net.Listener {
	t.Helper()
	listener := testport.Listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if config != nil {
				_ = tls.Server(conn, config).Handshake()
			}
			conn.Close()
		}
	}()
	return listener
}

// certificate signed by itself for a name or address, and the file with it.
func certificate(t *testing.T, host string, changes ...func(*x509.Certificate)) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	for _, change := range changes {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}
