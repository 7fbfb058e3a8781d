package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newDirectory(t *testing.T) Directory {
	t.Helper()
	d := Directory{Path: t.TempDir(), Server: "https://10.128.0.1:6443"}
	if err := d.ControlPlane([]string{"10.128.0.1", "kubernetes.default"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Node("n1", "10.128.0.1"); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCertificatesAreSignedForTheirNames(t *testing.T) {
	d := newDirectory(t)
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, d.file("ca.crt")))
	for file, name := range map[string]string{"apiserver": "kubernetes.default", "kubelet-n1": "10.128.0.1"} {
		if _, err := certificate(t, d.file(file+".crt")).Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := certificate(t, d.file("front-proxy-client.crt")).Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("the front proxy's certificate is signed by the cluster's authority: it would count as a user")
	}
}

func TestAKubeletHasTheIdentityThatTheNodeAuthorizerWants(t *testing.T) {
	subject := certificate(t, newDirectory(t).file("kubelet-n1.crt")).Subject
	if subject.CommonName != "system:node:n1" || len(subject.Organization) != 1 || subject.Organization[0] != "system:nodes" {
		t.Errorf("got %s", subject)
	}
}

func TestASecondCallChangesNothing(t *testing.T) {
	d := newDirectory(t)
	before := contents(t, d.Path)
	if err := d.ControlPlane([]string{"10.128.0.1"}); err != nil {
		t.Fatal(err)
	}
	for name, text := range contents(t, d.Path) {
		if before[name] != text {
			t.Errorf("%s changed", name)
		}
	}
}

func TestWhatAnInterruptionLeftOutIsMade(t *testing.T) {
	d := newDirectory(t)
	for _, lost := range []string{"admin.crt", "admin.kubeconfig"} {
		if err := os.Remove(d.file(lost)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.ControlPlane(nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(d.file("admin.kubeconfig"))
	if err != nil || !strings.Contains(string(text), d.Server) {
		t.Errorf("kubeconfig %q, error %v", text, err)
	}
}

func TestANewClusterTrustsNoIssuer(t *testing.T) {
	text, err := os.ReadFile(newDirectory(t).file(AuthenticationFile))
	if err != nil || !strings.Contains(string(text), "kind: AuthenticationConfiguration\njwt: []\n") {
		t.Errorf("%q, error %v", text, err)
	}
}

func TestIssuersThatWereAddedStay(t *testing.T) {
	d := newDirectory(t)
	const added = "kind: AuthenticationConfiguration\njwt: [{issuer: {url: https://login.example}}]\n"
	if err := os.WriteFile(d.file(AuthenticationFile), []byte(added), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.ControlPlane(nil); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(d.file(AuthenticationFile)); err != nil || string(text) != added {
		t.Errorf("%q, error %v", text, err)
	}
}

func TestKeysAreForRootOnly(t *testing.T) {
	d := newDirectory(t)
	for name := range contents(t, d.Path) {
		info, err := os.Stat(d.file(name))
		if err != nil {
			t.Fatal(err)
		}
		secret := strings.HasSuffix(name, ".key") || strings.HasSuffix(name, ".kubeconfig")
		if secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	found := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(file)] = string(data)
	}
	return found
}
