package mapdata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
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

// scenario returns the one with a digest, which the user's run names. The caller's turn to work bounds how many are read at a time.
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
	return m.scenarios.put(keptScenario{digest, opened, int64(len(text))}), nil
}

func (s *scenarios) get(digest string) *scenario.Scenario {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(digest)
}

// find a scenario, which is then the one used last.
func (s *scenarios) find(digest string) *scenario.Scenario {
	for i, one := range s.kept {
		if one.digest == digest {
			s.kept = append(append(s.kept[:i:i], s.kept[i+1:]...), one)
			return one.scenario
		}
	}
	return nil
}

// put keeps a scenario, and returns it, or the one that another request has kept meanwhile.
func (s *scenarios) put(one keptScenario) *scenario.Scenario {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.find(one.digest); known != nil {
		return known
	}
	s.kept, s.bytes = append(s.kept, one), s.bytes+one.bytes
	for len(s.kept) > 1 && s.bytes > maxKeptBytes {
		s.bytes -= s.kept[0].bytes
		s.kept = s.kept[1:]
	}
	return one.scenario
}

// errorOf a scenario that cannot be read any further. An answer, and the end of the browser's patience, stay what they are.
func errorOf(err error) error {
	var known *Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errorf(http.StatusUnprocessableEntity, "%s", err)
}
