package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Scenario opens the compiled scenario with a digest, sha256:…; if there is none, IsNotFound reports true. The caller must
// check the content against the digest, and closes it.
func (c *Client) Scenario(ctx context.Context, digest string) (io.ReadCloser, error) {
	response, err := c.do(ctx, http.MethodGet, scenarioPath(digest), nil, nil, "")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// HasScenario reports whether the server has the compiled scenario with a digest. It counts as a use, which prevents deletion.
func (c *Client) HasScenario(ctx context.Context, digest string) (bool, error) {
	return c.HasScenarioFor(ctx, "", digest)
}

// HasScenarioFor is HasScenario, by the operator, for a Scenario of a namespace.
func (c *Client) HasScenarioFor(ctx context.Context, namespace, digest string) (bool, error) {
	response, err := c.do(ctx, http.MethodHead, scenarioPath(digest), queryOf(namespace), nil, "")
	if IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, response.Body.Close()
}

// HasScenarioRoom reports whether the server has the compiled scenario with a digest, or room for its bytes in a namespace.
func (c *Client) HasScenarioRoom(ctx context.Context, namespace, digest string, size int64) (bool, error) {
	query := queryOf(namespace)
	query.Set("bytes", strconv.FormatInt(size, 10))
	response, err := c.do(ctx, http.MethodHead, scenarioPath(digest), query, nil, "")
	switch {
	case err == nil:
		return true, response.Body.Close()
	case IsNotFound(err):
		return true, nil
	case HasStatus(err, http.StatusInsufficientStorage):
		return false, nil
	}
	return false, err
}

// PutScenario stores the compiled scenario with a digest, which the server checks; idempotent. HasScenario saves sending it again.
func (c *Client) PutScenario(ctx context.Context, digest string, content io.Reader) error {
	return c.PutScenarioFor(ctx, "", digest, content)
}

// PutScenarioFor is PutScenario, by the operator, for a Scenario of a namespace.
func (c *Client) PutScenarioFor(ctx context.Context, namespace, digest string, content io.Reader) error {
	response, err := c.do(ctx, http.MethodPut, scenarioPath(digest), queryOf(namespace), content, "application/octet-stream")
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func queryOf(namespace string) url.Values {
	if namespace == "" {
		return url.Values{}
	}
	return url.Values{"namespace": {namespace}}
}

func scenarioPath(digest string) string { return "/v1/scenarios/" + url.PathEscape(digest) }
