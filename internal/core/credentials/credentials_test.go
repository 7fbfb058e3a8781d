package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/netip"
	"regexp"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newCredentials(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := Make("bft", []string{"nor", "prt"}, []netip.Addr{netip.MustParseAddr("198.18.9.1")}, now)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// connect connects a client that trusts authority to a broker that has own.
func connect(t *testing.T, own, authority map[string][]byte, host string, at time.Time) error {
	t.Helper()
	pair, err := tls.X509KeyPair(own[Cert], own[Key])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority[CA]) {
		t.Fatal("ca.crt is no certificate")
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		if connection, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, connection) // the client's error counts
			_ = connection.Close()
		}
	}()
	client, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12, Time: func() time.Time { return at }})
	if err != nil {
		return err
	}
	return client.Close()
}

func TestClientsTrustTheirBrokersByEveryNameAndNobodyElse(t *testing.T) {
	ours, others := newCredentials(t), newCredentials(t)
	cases := map[string]struct {
		authority map[string][]byte
		host      string
		at        time.Time
		good      bool
	}{
		"by a node's name":                         {ours, "prt", now, true},
		"by a radio address":                       {ours, "198.18.9.1", now, true},
		"on the same node":                         {ours, "127.0.0.1", now, true},
		"on the same node, by name":                {ours, "localhost", now, true},
		"with a clock nine years behind":           {ours, "nor", now.AddDate(-9, 0, 0), true},
		"with a clock nine years ahead":            {ours, "nor", now.AddDate(9, 0, 0), true},
		"but not by another name":                  {ours, "usa", now, false},
		"and not with another experiment's word":   {others, "nor", now, false},
		"and not with a clock of the last century": {ours, "nor", now.AddDate(-40, 0, 0), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := connect(t, ours, c.authority, c.host, c.at); (err == nil) != c.good {
				t.Errorf("the handshake says %v", err)
			}
		})
	}
}

func TestUserAndPasswordAreRandomAndSafeToQuote(t *testing.T) {
	first, second := newCredentials(t), newCredentials(t)
	for file, digits := range map[string]string{Username: "{16}", Password: "{32}"} {
		if !regexp.MustCompile("^[0-9a-f]" + digits + "$").Match(first[file]) {
			t.Errorf("%s is %q", file, first[file])
		}
		if bytes.Equal(first[file], second[file]) {
			t.Errorf("two experiments have the same %s", file)
		}
	}
}
