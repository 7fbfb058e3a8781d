package mapdata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"

	"vignette.dev/vignette/internal/digests"
	"vignette.dev/vignette/internal/scenario"
)

const (
	// maxScenarioBytes of a compiled scenario that the map reads: 24 platforms over two hours have 2 MiB, 243 up to 240.
	maxScenarioBytes = 256 << 20
	// maxKeptBytes of compiled scenarios are kept in memory.
	maxKeptBytes = 256 << 20
	// maxKeptTracks of runs.
	maxKeptTracks = 16
)

type keptScenario struct {
	*scenario.Scenario
	bytes int64
}

// scenario returns the one with a digest, which the user's run names. The caller's turn to work bounds how many are read at a time.
func (m *Maps) scenario(ctx context.Context, s Source, digest string) (*scenario.Scenario, error) {
	if known, ok := m.scenarios.get(digest); ok {
		return known.Scenario, nil
	}
	content, err := s.Archive.Scenario(ctx, digest)
	if err != nil {
		return nil, explain(err, "scenario "+digest)
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, maxScenarioBytes+1))
	if err != nil {
		return nil, explain(err, "scenario "+digest)
	}
	if len(text) > maxScenarioBytes {
		return nil, errorf(http.StatusUnprocessableEntity, "scenario %s has more than %d MiB: the map shows smaller ones", digest, maxScenarioBytes>>20)
	}
	hash := sha256.New()
	hash.Write(text)
	if got := digests.Of(hash); got != digest {
		return nil, errorf(http.StatusBadGateway, "scenario %s was damaged on its way, and has the digest %s: try again", digest, got)
	}
	opened, err := scenario.Open(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, errorf(http.StatusUnprocessableEntity, "scenario %s cannot be read: %v", digest, err)
	}
	// Another request may have kept it meanwhile.
	kept := m.scenarios.getOrMake(digest, func() keptScenario { return keptScenario{opened, int64(len(text))} })
	m.scenarios.trim(maxKeptBytes, func(s keptScenario) int64 { return s.bytes })
	return kept.Scenario, nil
}

// errorOf a scenario that cannot be read any further. An answer, and the end of the browser's patience, stay what they are.
func errorOf(err error) error {
	if _, ok := errors.AsType[*Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errorf(http.StatusUnprocessableEntity, "%s", err)
}
