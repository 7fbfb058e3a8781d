package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

// What the API server publishes for servers behind its aggregation layer: how it identifies itself, and which headers name the user.
const (
	frontNamespace = "kube-system"
	frontConfigMap = "extension-apiserver-authentication"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// aggregation serves the archive as an API of Kubernetes.
type aggregation struct {
	front       authenticator.Request
	certificate tls.Certificate
	authority   []byte // PEM, what the API server is to trust
	services    dynamic.ResourceInterface
}

// newAggregation starts to follow what the API server publishes; host is the server's name in the cluster.
func newAggregation(ctx context.Context, config *rest.Config, host string) (*aggregation, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := &aggregation{services: objects.Resource(apiServices)}
	if a.certificate, a.authority, err = newCertificate(host); err != nil {
		return nil, err
	}
	if a.front, err = frontProxy(ctx, client); err != nil {
		return nil, err
	}
	return a, nil
}

// frontProxy recognises the API server's requests by the client certificate of its aggregation layer.
func frontProxy(ctx context.Context, client kubernetes.Interface) (authenticator.Request, error) {
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front proxy", frontNamespace, frontConfigMap, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, err
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(frontConfigMap, frontNamespace, client, "requestheader-username-headers",
		"requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-allowed-names")
	// A failed read is repeated later: until then nobody has access.
	for _, err := range []error{authority.RunOnce(ctx), headers.RunOnce(ctx)} {
		if err != nil {
			slog.Error("users have no access yet: the API server's front-proxy configuration could not be read", "error", err)
		}
	}
	go authority.Run(ctx, 1)
	go headers.Run(ctx, 1)
	return headerrequest.NewDynamicVerifyOptionsSecure(authority.VerifyOptions, headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
		headerrequest.StringSliceProviderFunc(headers.UsernameHeaders), headerrequest.StringSliceProviderFunc(headers.UIDHeaders),
		headerrequest.StringSliceProviderFunc(headers.GroupHeaders), headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes)), nil
}

// certificateLifetime is longer than any pod's.
const certificateLifetime = 10 * 365 * 24 * time.Hour

// newCertificate is for this process alone, without a Secret. The API server trusts this one and the authority that signed it,
// whose key nobody keeps.
func newCertificate(host string) (pair tls.Certificate, authority []byte, err error) {
	certificate, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: host, MaxAge: certificateLifetime})
	if err != nil {
		return pair, nil, err
	}
	pair, err = tls.X509KeyPair(certificate, key)
	return pair, certificate, err
}

// tls of the port. Client certificates are checked for each request, so that a new authority of the API server counts at once.
func (a *aggregation) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.certificate}, ClientAuth: tls.RequestClientCert}
}

// registerInterval is how often the trust of the API server is checked.
const registerInterval = 20 * time.Second

// register makes the API server trust this process's certificate, again and again.
func (a *aggregation) register(ctx context.Context) {
	for before := ""; ; {
		problem := ""
		if err := a.registerOnce(ctx); err != nil {
			problem = err.Error()
		}
		if problem != before && ctx.Err() == nil {
			slog.Info("registering with the API server, through which users read", "error", problem)
		}
		before = problem
		pause := registerInterval
		if problem != "" {
			pause = time.Second
		}
		if !clock.Pause(ctx, pause) {
			return
		}
	}
}

func (a *aggregation) registerOnce(ctx context.Context) error {
	name := runapi.ArchiveVersion + "." + runapi.ArchiveGroup
	found, err := a.services.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no APIService %s: it is part of the chart", name)
	}
	if err != nil {
		return err
	}
	if trusts(found, a.authority) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": a.authority}})
	if err != nil {
		return err
	}
	_, err = a.services.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "vignette-server"})
	return err
}

func trusts(service *unstructured.Unstructured, authority []byte) bool {
	text, err := json.Marshal(service.Object["spec"])
	var spec struct {
		CABundle []byte `json:"caBundle"`
	}
	return errors.Join(err, json.Unmarshal(text, &spec)) == nil && bytes.Equal(spec.CABundle, authority)
}
