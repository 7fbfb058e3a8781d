package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func TestTheCertificateIsForTheServersNameAndVerifiesByItsAuthorityAlone(t *testing.T) {
	const host = "vignette-server.vignette-system.svc"
	made, authority, err := newCertificate(host)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(made.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	for block, rest := pem.Decode(authority); block != nil; block, rest = pem.Decode(rest) {
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if one.IsCA {
			roots.AddCert(one)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
		t.Errorf("what the API server is told to trust does not verify: %v", err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: "other.vignette-system.svc", Roots: roots}); err == nil {
		t.Error("it is for another name, too")
	}
}

func apiService(spec map[string]any) *unstructured.Unstructured {
	service := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	service.SetName("v1alpha1.results.vignette.dev")
	return service
}

func TestTheAPIServerIsToldWhatToTrust(t *testing.T) {
	ours, older := base64.StdEncoding.EncodeToString([]byte("ours")), base64.StdEncoding.EncodeToString([]byte("older"))
	for name, c := range map[string]struct {
		has     map[string]any
		patches int
	}{
		"a new one":                   {map[string]any{"version": "v1alpha1"}, 1},
		"that of the process before":  {map[string]any{"version": "v1alpha1", "caBundle": older}, 1},
		"what it has been told":       {map[string]any{"version": "v1alpha1", "caBundle": ours}, 0},
		"one without a spec, as yet":  {nil, 1},
		"something that is no base64": {map[string]any{"caBundle": "%"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleDynamicClient(runtime.NewScheme(), apiService(c.has))
			a := &aggregation{authority: []byte("ours"), services: client.Resource(apiServices)}
			if err := a.registerOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			patches := 0
			for _, action := range client.Actions() {
				if action.GetVerb() == "patch" {
					patches++
				}
			}
			found, err := a.services.Get(t.Context(), "v1alpha1.results.vignette.dev", metav1.GetOptions{})
			got, _, nested := unstructured.NestedString(found.Object, "spec", "caBundle")
			if errors.Join(err, nested) != nil || got != ours || patches != c.patches {
				t.Errorf("caBundle %q after %d patches, %v; want %q after %d", got, patches, err, ours, c.patches)
			}
		})
	}
	empty := &aggregation{services: fake.NewSimpleDynamicClient(runtime.NewScheme()).Resource(apiServices)}
	if err := empty.registerOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "it is part of the chart") {
		t.Errorf("without an APIService: %v; want where it comes from", err)
	}
}
