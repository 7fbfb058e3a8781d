package node

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	apiTimeout   = 10 * time.Second
	apiReadyPoll = 100 * time.Millisecond
)

// api is the part of the Kubernetes API that a node itself uses.
type api struct {
	server string
	client *http.Client
}

var errNotFound = errors.New("not found")

func newAPI(server string) (*api, error) {
	certificate, err := tls.LoadX509KeyPair(pkiDir+"/volumes.crt", pkiDir+"/volumes.key")
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(pkiDir + "/ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s/ca.crt: no certificate", pkiDir)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}}
	return &api{server: server, client: &http.Client{Transport: transport, Timeout: apiTimeout}}, nil
}

func (a *api) waitReady() {
	for a.call(http.MethodGet, "/readyz", "", nil, nil) != nil {
		time.Sleep(apiReadyPoll)
	}
}

// call sends body and decodes the answer into result; both may be nil.
func (a *api) call(method, path, contentType string, body, result any) error {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(data)
	}
	request, err := http.NewRequest(method, a.server+path, payload)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w", method, path, errNotFound)
	case response.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	case result == nil:
		return nil
	}
	return json.Unmarshal(answer, result)
}
