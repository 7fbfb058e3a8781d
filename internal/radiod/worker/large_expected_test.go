//go:build long

package worker

import (
	"bytes"
	"math"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/scenario"
)

// expected is the share of messages that reach the first node by the links' packet completion rates alone,
// over routes of least cost. It also returns the mean of their hops. It ignores ARP, queues and routers, and
// knows links' losses exactly.
func expected(completion [][]float64, cost func(completion float64) float64) (share, hops float64) {
	nodes := len(completion)
	far, through, steps, done := make([]float64, nodes), make([]float64, nodes), make([]float64, nodes), make([]bool, nodes)
	for i := 1; i < nodes; i++ {
		far[i] = math.Inf(1)
	}
	through[0] = 1
	for range nodes {
		at := -1
		for i := range nodes {
			if !done[i] && !math.IsInf(far[i], 1) && (at < 0 || far[i] < far[at]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		done[at] = true
		share, hops = share+through[at], hops+steps[at]
		for i := range nodes {
			if c := completion[i][at]; far[at]+cost(c) < far[i] {
				far[i], through[i], steps[i] = far[at]+cost(c), through[at]*c, steps[at]+1
			}
		}
	}
	return (share - 1) / float64(nodes-1), hops / float64(nodes-1)
}

// completions of all links of the many nodes at a time of their scenario.
func completions(t *testing.T, s *scenario.Cursor, at time.Duration) [][]float64 {
	t.Helper()
	pcr, err := phy.ParsePCR([]byte(manyPCR))
	if err == nil {
		err = s.Seek(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := make([][]float64, manyNodes)
	for i := range all {
		all[i] = make([]float64, manyNodes)
		for j := range all[i] {
			if loss, known := s.Pathloss(i, j); known && i != j {
				all[i][j] = pcr.Completion(manyPowerDBm-loss-manyNoiseDBm, messageBytes, 1e6)
			}
		}
	}
	return all
}

func TestRoutesOfFewestHopsTakeTheLinksThatLoseMost(t *testing.T) {
	_, content := manyMovements(t)
	s, err := scenario.Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	cursor := s.NewCursor()
	for at := time.Minute; at <= 6*time.Minute; at += time.Minute {
		all := completions(t, cursor, at)
		// A neighbour stays one while one of ten HELLOs comes.
		hopShare, hopHops := expected(all, func(c float64) float64 {
			if c < 0.05 {
				return math.Inf(1)
			}
			return 1
		})
		// Directional airtime at one rate: transmissions for each that arrives, at most 8.
		datShare, datHops := expected(all, func(c float64) float64 {
			if c < 1./8 {
				return math.Inf(1)
			}
			return 1 / c
		})
		t.Logf("at %v: of fewest hops (%.2f) %.0f %% arrive, of least airtime (%.2f hops) %.0f %%", at, hopHops, 100*hopShare, datHops, 100*datShare)
		if hopShare > 0.4 || datShare < 0.8 {
			t.Errorf("at %v: shares %.2f and %.2f; want less than 0.4 by hops, and more than 0.8 by airtime", at, hopShare, datShare)
		}
	}
}
