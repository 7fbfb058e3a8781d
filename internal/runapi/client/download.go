package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/runapi"
)

// Digests is Files with the SHA-256 of every file of a sealed run; the server computes those of records and results.
func (c *Client) Digests(ctx context.Context, uid string) (runapi.Manifest, error) {
	var manifest runapi.Manifest
	err := c.sendJSON(ctx, http.MethodGet, runPath(uid)+"/files", url.Values{"digests": {"true"}}, nil, &manifest)
	return manifest, err
}

// FileFrom opens an archived file from an offset on, to continue an interrupted download. The caller closes it.
func (c *Client) FileFrom(ctx context.Context, uid, path string, offset int64) (io.ReadCloser, error) {
	query := url.Values{"offset": {strconv.FormatInt(offset, 10)}}
	response, err := c.do(ctx, http.MethodGet, runPath(uid)+"/files/"+escapePath(path), query, nil, "")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// Archive opens all selected files of a run as one tar file. The caller closes it.
func (c *Client) Archive(ctx context.Context, uid string, selection runapi.Selection) (io.ReadCloser, error) {
	query := url.Values{}
	for name, kinds := range map[string][]string{"only": selection.Only, "without": selection.Without} {
		if len(kinds) > 0 {
			query.Set(name, strings.Join(kinds, ","))
		}
	}
	response, err := c.do(ctx, http.MethodGet, runPath(uid)+"/archive.tar", query, nil, "")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
