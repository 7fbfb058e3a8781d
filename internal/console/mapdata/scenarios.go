package mapdata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"sync"

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

// scenarios keeps compiled scenarios in memory by digest.
type scenarios struct {
	mu    sync.Mutex
	kept  []keptScenario // the one used last at the end
	bytes int64
}

type keptScenario struct {
	digest   string
	scenario *scenario.Scenario
	bytes    int64
}

// scenario returns the one with a digest, which the user's run names.
func (m *Maps) scenario(ctx context.Context, s Source, digest string) (*scenario.Scenario, error) {
	if known := m.scenarios.get(digest); known != nil {
		return known, nil
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
	m.scenarios.put(keptScenario{digest, opened, int64(len(text))})
	return opened, nil
}

func (s *scenarios) get(digest string) *scenario.Scenario {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, one := range s.kept {
		if one.digest == digest {
			s.kept = append(append(s.kept[:i:i], s.kept[i+1:]...), one)
			return one.scenario
		}
	}
	return nil
}

func (s *scenarios) put(one keptScenario) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.bytes = append(s.kept, one), s.bytes+one.bytes
	for len(s.kept) > 1 && s.bytes > maxKeptBytes {
		s.bytes -= s.kept[0].bytes
		s.kept = s.kept[1:]
	}
}

// errorOf a scenario that cannot be read any further.
func errorOf(err error) error {
	return errorf(http.StatusUnprocessableEntity, "%s", fmt.Sprint(err))
}
