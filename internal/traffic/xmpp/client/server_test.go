package client

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/prosody"
)

// server is Debian's Prosody with the configuration of an experiment, moved to loopback and other directories.
type server struct {
	address, metrics, dir string
	command               *exec.Cmd
	output                bytes.Buffer
}

// user is the user of an experiment's containers.
const user = 65532

func startServer(security *v1alpha1.Security, port, metricsPort int) (*server, error) {
	s := &server{address: fmt.Sprintf("127.0.0.1:%d", port), metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", metricsPort)}
	var err error
	if s.dir, err = os.MkdirTemp("", "prosody"); err != nil {
		return nil, err
	}
	if err := s.writeFiles(security, port, metricsPort); err != nil {
		return nil, err
	}
	return s, s.run()
}

func (s *server) writeFiles(security *v1alpha1.Security, port, metricsPort int) error {
	site := apps.Site{App: v1alpha1.App{Name: "server", Prosody: &v1alpha1.Prosody{}, Security: security}, Node: "prt", Instances: []string{"prt/server"}, MetricsPorts: []int{metricsPort}}
	moved := strings.NewReplacer(agentconfig.RunDir, s.dir, agentconfig.SecurityDir, s.dir, `interfaces = { "*" }`, `interfaces = { "127.0.0.1" }`,
		"c2s_ports = { 5222 }", fmt.Sprintf("c2s_ports = { %d }", port))
	certificate, key, err := certificate()
	files := map[string]string{"ca.crt": certificate, "tls.crt": certificate, "tls.key": key, "username": "0123456789abcdef", "password": "fedcba9876543210"}
	for _, f := range (prosody.Kind{}).Render(site).Files {
		files[filepath.Base(f.Path)] = moved.Replace(f.Content)
	}
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644))
	}
	return errors.Join(err, os.Chmod(s.dir, 0o777))
}

func (s *server) run() error {
	s.command = exec.Command("/bin/sh", filepath.Join(s.dir, "start.sh"))
	s.command.Dir, s.command.Stdout, s.command.Stderr = "/", &s.output, &s.output
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		s.command.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	for range 100 {
		if conn, err := net.Dial("tcp", s.address); err == nil {
			return conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return fmt.Errorf("prosody does not listen at %s: %s", s.address, s.output.String())
}

// stop stops the server as an agent does, and returns how long it took.
func (s *server) stop() time.Duration {
	begin := time.Now()
	_ = s.command.Process.Signal(syscall.SIGTERM)
	_ = s.command.Wait()
	return time.Since(begin)
}

// certificate makes a self-signed certificate for 127.0.0.1, and its key.
func certificate() (string, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return "", "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), err
}

// shared is the server without security that most tests use. The first of them starts it.
var shared struct {
	once sync.Once
	*server
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		shared.stop()
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// needServer skips the test if Prosody is not installed.
func needServer(t *testing.T) {
	t.Helper()
	testtool.Need(t, "prosodyctl")
}

func sharedServer(t *testing.T) *server {
	t.Helper()
	needServer(t)
	shared.once.Do(func() { shared.server, shared.err = startServer(nil, testport.Free(t), testport.Free(t)) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func ownServer(t *testing.T, security *v1alpha1.Security) *server {
	t.Helper()
	needServer(t)
	s, err := startServer(security, testport.Free(t), testport.Free(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		os.RemoveAll(s.dir)
	})
	return s
}

func TestTheServerServesItsStatisticsAndStopsAtOnce(t *testing.T) {
	t.Parallel()
	s := ownServer(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var text string
	eventually(t, func() string { return "metrics: " + text }, func() bool {
		text = get(ctx, s.metrics)
		return strings.Contains(text, "prosody_mod_c2s__connections") && strings.HasSuffix(text, "# EOF\n")
	})
	if took := s.stop(); took > 2*time.Second || strings.Contains(s.output.String(), "error") {
		t.Errorf("stopped after %v, said %s; want no errors", took, s.output.String())
	}
}

// get returns what Prometheus would get, which calls the server by another name.
func get(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Host = "prometheus.example:1"
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer.Status
	}
	return string(text)
}
