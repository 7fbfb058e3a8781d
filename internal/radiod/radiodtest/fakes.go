package radiodtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// ScenarioStore has compiled scenarios by digest, as the server would.
type ScenarioStore struct {
	mu        sync.Mutex
	scenarios map[string][]byte
	err       error
	asked     int
}

// Scenario implements the library's source.
func (s *ScenarioStore) Scenario(_ context.Context, digest string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	content, ok := s.scenarios[digest]
	if !ok {
		return nil, errors.New("no such scenario")
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// Put a scenario into the store.
func (s *ScenarioStore) Put(digest string, content []byte) *ScenarioStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scenarios == nil {
		s.scenarios = map[string][]byte{}
	}
	s.scenarios[digest] = content
	return s
}

// Fail has the store answer with an error; with nil it has its scenarios again.
func (s *ScenarioStore) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Asked is how often the store was asked.
func (s *ScenarioStore) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Cable is a socket that can be cut.
type Cable struct {
	*net.UDPConn
	Cut *atomic.Bool
}

// WriteToUDPAddrPort loses what is written while the cable is cut.
func (c *Cable) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if c.Cut.Load() {
		return len(b), nil
	}
	return c.UDPConn.WriteToUDPAddrPort(b, to)
}

// At is a change of links of the network wan at an offset from T0.
func At(offset time.Duration, from, to string, patch v1alpha1.LinkPatch) v1alpha1.TimedRadioChange {
	return v1alpha1.TimedRadioChange{AtNanoseconds: int64(offset), RadioChange: v1alpha1.RadioChange{Network: "wan", From: from, To: to, Link: &patch}}
}

// Silence is a change of the network wan.
func Silence(offset time.Duration, silent bool) v1alpha1.TimedRadioChange {
	return v1alpha1.TimedRadioChange{AtNanoseconds: int64(offset), RadioChange: v1alpha1.RadioChange{Network: "wan", Silent: &silent}}
}

// LossOf a share of frames.
func LossOf(share v1alpha1.Percent) v1alpha1.LinkPatch { return v1alpha1.LinkPatch{Loss: &share} }
