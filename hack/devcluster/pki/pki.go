// Package pki makes a cluster's certificates and kubeconfigs, and the file of its login services, once.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"vignette.dev/vignette/hack/devcluster/store"
)

const validity = 10 * 365 * 24 * time.Hour

// AuthenticationFile tells the API server which OpenID Connect issuers it trusts. It reads the file again when it changes.
const AuthenticationFile = "authentication.yaml"

// noIssuers is the file of a new cluster. Who is allowed without a login stays as the API server has it without the file.
const noIssuers = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt: []
`

// Directory holds a cluster's keys, certificates and kubeconfigs. Existing
// files stay, so that a second call changes nothing.
type Directory struct {
	Path string
	// Server is the URL of the API server, for the kubeconfigs.
	Server string
}

// ControlPlane makes everything that a cluster needs apart from its nodes' own
// certificates; apiNames are the names and addresses of the API server.
func (d Directory) ControlPlane(apiNames []string) error {
	leaves := []leaf{
		{file: "front-proxy-client", ca: "front-proxy-ca", commonName: "front-proxy-client"},
		{file: "apiserver", ca: "ca", commonName: "kube-apiserver", names: apiNames},
		{file: "apiserver-kubelet-client", ca: "ca", commonName: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		{file: "admin", ca: "ca", commonName: "kubernetes-admin", groups: []string{"system:masters"}, kubeconfig: true},
		{file: "kube-controller-manager", ca: "ca", commonName: "system:kube-controller-manager", kubeconfig: true},
		{file: "kube-scheduler", ca: "ca", commonName: "system:kube-scheduler", kubeconfig: true},
		{file: "kube-proxy", ca: "ca", commonName: "system:kube-proxy", kubeconfig: true},
		{file: "multus", ca: "ca", commonName: "devcluster:multus", kubeconfig: true},
		{file: "volumes", ca: "ca", commonName: "devcluster:volumes"},
	}
	for _, name := range []string{"ca", "front-proxy-ca"} {
		if err := d.authority(name); err != nil {
			return err
		}
	}
	if err := d.serviceAccountKey(); err != nil {
		return err
	}
	if err := d.authentication(); err != nil {
		return err
	}
	for _, l := range leaves {
		if err := d.leaf(l); err != nil {
			return err
		}
	}
	return nil
}

// Node makes the certificate and kubeconfig of one node's kubelet.
func (d Directory) Node(name, address string) error {
	return d.leaf(leaf{
		file: "kubelet-" + name, ca: "ca", commonName: "system:node:" + name,
		groups: []string{"system:nodes"}, names: []string{name, address}, kubeconfig: true,
	})
}

type leaf struct {
	file, ca, commonName string
	groups, names        []string
	kubeconfig           bool
}

func (d Directory) file(name string) string { return filepath.Join(d.Path, name) }

func (d Directory) exists(name string) bool {
	_, err := os.Stat(d.file(name))
	return !errors.Is(err, fs.ErrNotExist)
}

func (d Directory) authority(name string) error {
	if d.exists(name + ".crt") {
		return nil
	}
	template := template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	return d.issue(name, template, nil)
}

func (d Directory) leaf(l leaf) error {
	if !d.exists(l.file + ".crt") {
		template := template(l.commonName)
		template.Subject.Organization = l.groups
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		for _, name := range l.names {
			if ip := net.ParseIP(name); ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else {
				template.DNSNames = append(template.DNSNames, name)
			}
		}
		authority, err := tls.LoadX509KeyPair(d.file(l.ca+".crt"), d.file(l.ca+".key"))
		if err != nil {
			return fmt.Errorf("authority %s: %w", l.ca, err)
		}
		if err := d.issue(l.file, template, &authority); err != nil {
			return err
		}
	}
	if l.kubeconfig && !d.exists(l.file+".kubeconfig") {
		return d.kubeconfig(l.file)
	}
	return nil
}

func template(commonName string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: commonName},
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(validity),
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

// issue writes the key before the certificate, so that each certificate has its key.
func (d Directory) issue(name string, template *x509.Certificate, authority *tls.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	parent, signer := template, crypto.PrivateKey(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	if err := d.writeKey(name+".key", key); err != nil {
		return err
	}
	return d.writePEM(name+".crt", 0o644, "CERTIFICATE", der)
}

func (d Directory) serviceAccountKey() error {
	if d.exists("sa.pub") {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := d.writeKey("sa.key", key); err != nil {
		return err
	}
	return d.writePEM("sa.pub", 0o644, "PUBLIC KEY", public)
}

func (d Directory) authentication() error {
	if d.exists(AuthenticationFile) {
		return nil
	}
	return store.WriteFile(d.file(AuthenticationFile), []byte(noIssuers), 0o644)
}

func (d Directory) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return d.writePEM(name, 0o600, "EC PRIVATE KEY", der)
}

func (d Directory) writePEM(name string, mode os.FileMode, kind string, der []byte) error {
	return store.WriteFile(d.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func (d Directory) kubeconfig(name string) error {
	encoded := make([]any, 0, 3)
	for _, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		data, err := os.ReadFile(d.file(file))
		if err != nil {
			return err
		}
		encoded = append(encoded, base64.StdEncoding.EncodeToString(data))
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: devcluster, cluster: {server: %[2]q, certificate-authority-data: %[3]s}}]
users: [{name: %[1]s, user: {client-certificate-data: %[4]s, client-key-data: %[5]s}}]
contexts: [{name: devcluster, context: {cluster: devcluster, user: %[1]s}}]
current-context: devcluster
`, append([]any{name, d.Server}, encoded...)...)
	return store.WriteFile(d.file(name+".kubeconfig"), []byte(text), 0o600)
}
