package server

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"

	"vignette.dev/vignette/internal/runapi"
)

// digestMismatch is the error for bytes that do not have their digest.
func (s *Server) digestMismatch(what string) error {
	s.metrics.refused.WithLabelValues(refusedDamaged).Inc()
	return statusErrorf(http.StatusUnprocessableEntity, "%s does not have the SHA-256 that came with it: it was damaged in transit, send it again", what)
}

// readVerified reads a body completely and compares it with its digest, if it has one.
func (s *Server) readVerified(r *http.Request, body io.Reader) ([]byte, error) {
	digest, err := s.verifyingReader(r, body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(digest)
}

// verifyingReader returns a reader that fails at the body's end if the digest does not match.
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

// digestMatches reports whether the bytes of a part have its digest.
func digestMatches(part runapi.LogPart, content []byte) bool {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]) == part.SHA256
}
