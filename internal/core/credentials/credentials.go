// Package credentials creates the credentials of brokers with security and their clients: a certificate authority of the
// experiment with one certificate for all its brokers, a user name and a password.
package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// Names of the files.
const (
	CA       = "ca.crt"
	Cert     = "tls.crt"
	Key      = "tls.key"
	Username = "username"
	Password = "password"
)

// validYears is the validity of certificates before and after their creation, because clocks of an experiment may step.
const validYears = 10

// Make creates credentials for brokers with the given names and addresses, and loopback. The name is the experiment's.
func Make(name string, hosts []string, addresses []netip.Addr, now time.Time) (map[string][]byte, error) {
	files := map[string][]byte{Username: []byte(randomHex(8)), Password: []byte(randomHex(16))}
	authority := template("vignette "+name, now)
	authority.IsCA, authority.MaxPathLenZero, authority.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the key of the authority: %w", err)
	}
	if files[CA], err = sign(authority, authority, &signer.PublicKey, signer); err != nil {
		return nil, err
	}
	broker := template("brokers of "+name, now)
	broker.KeyUsage, broker.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	broker.DNSNames, broker.IPAddresses = append([]string{"localhost"}, hosts...), []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, address := range addresses {
		broker.IPAddresses = append(broker.IPAddresses, address.AsSlice())
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the brokers' key: %w", err)
	}
	if files[Cert], err = sign(broker, authority, &key.PublicKey, signer); err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the brokers' key: %w", err)
	}
	files[Key] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	return files, nil
}

func template(commonName string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(random(16)), Subject: pkix.Name{CommonName: commonName}, BasicConstraintsValid: true,
		NotBefore: now.AddDate(-validYears, 0, 0), NotAfter: now.AddDate(validYears, 0, 0),
	}
}

func sign(certificate, parent *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) ([]byte, error) {
	encoded, err := x509.CreateCertificate(rand.Reader, certificate, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("certificate %q: %w", certificate.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encoded}), nil
}

func random(bytes int) []byte {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	b[0] &= 0x7f        // a serial number must be positive (RFC 5280)
	return b
}

func randomHex(bytes int) string { return hex.EncodeToString(random(bytes)) }
