package server

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"

	"vignette.dev/vignette/internal/runapi"
)

// digestMismatch is the answer to bytes that are not those that were sent.
func (s *Server) digestMismatch(what string) error {
	s.metrics.refused.WithLabelValues("damaged").Inc()
	return statusErrorf(http.StatusUnprocessableEntity, "%s has another SHA-256 than it came with: it was damaged on its way, send it again", what)
}

// readVerified reads a body that the server must have as a whole, and holds it against its digest if it has one.
func (s *Server) readVerified(r *http.Request, body io.Reader) ([]byte, error) {
	digest, err := s.verifyingReader(r, body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(digest)
}

// verifyingReader gives an error in the place of a body's end where it has another digest than it came with.
func (s *Server) verifyingReader(r *http.Request, body io.Reader) (io.Reader, error) {
	want, found, err := runapi.ParseContentDigest(r.Header.Get(runapi.DigestHeader))
	if err != nil {
		return nil, statusErrorf(http.StatusBadRequest, "%v", err)
	}
	if !found {
		return body, nil
	}
	return &verifyingReader{server: s, body: body, hash: sha256.New(), want: want}, nil
}

type verifyingReader struct {
	server *Server
	body   io.Reader
	hash   hash.Hash
	want   [sha256.Size]byte
}

func (d *verifyingReader) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	_, _ = d.hash.Write(p[:n]) // never an error
	if err == io.EOF && [sha256.Size]byte(d.hash.Sum(nil)) != d.want {
		err = d.server.digestMismatch("the body")
	}
	return n, err
}

// digestMatches tells whether the bytes of a part are those that were sent.
func digestMatches(part runapi.LogPart, content []byte) bool {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]) == part.SHA256
}
