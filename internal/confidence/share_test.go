package confidence

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// The analysis checks its rule against the same file (analysis/tests/test_effects.py).
func TestTheIntervalOfAShareIsThatOfTheAnalysis(t *testing.T) {
	content, err := os.ReadFile("testdata/shares.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name      string
		Runs      []Counts
		Low, High float64
	}
	if err := json.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if _, low, high := Share(c.Runs); math.Abs(low-c.Low) > 1e-6 || math.Abs(high-c.High) > 1e-6 {
				t.Errorf("%.6f to %.6f; want %.6f to %.6f", low, high, c.Low, c.High)
			}
		})
	}
	if len(cases) < 8 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestTooFewRunsHaveNoIntervalOfAShare(t *testing.T) {
	if share, low, _ := Share([]Counts{{5, 10, 10}}); share != 0.5 || !math.IsNaN(low) {
		t.Errorf("one run: %v, %v", share, low)
	}
	if share, low, _ := Share([]Counts{{}, {}}); !math.IsNaN(share) || !math.IsNaN(low) {
		t.Errorf("nothing offered: %v, %v", share, low)
	}
}
