package apps

import (
	"math"
	"strconv"
	"testing"
)

func TestSeedsAreWhatTheDocumentationSays(t *testing.T) {
	// printf 'vignette:phase:7:prt/bft/1' | sha256sum, its first 63 bits
	if got, want := Seed(7, "phase", "prt/bft/1"), int64(8364063527773176926); got != want {
		t.Errorf("seed is %d, want %d: archived runs could not be repeated any more", got, want)
	}
}

func TestStreamsOfDifferentNamesPurposesAndSeedsDiffer(t *testing.T) {
	seen := map[int64]bool{}
	for _, purpose := range []string{"phase", "instance"} {
		for seed := range int64(10) {
			for i := range 100 {
				s := Seed(seed, purpose, strconv.Itoa(i))
				if seen[s] || s < 0 {
					t.Fatalf("seed %d of %s, %d, %d is negative or taken", s, purpose, seed, i)
				}
				seen[s] = true
			}
		}
	}
}

func TestFractionsFillTheUnitInterval(t *testing.T) {
	const n = 10000
	sum := 0.0
	for i := range n {
		f := Fraction(1, "phase", strconv.Itoa(i))
		if f < 0 || f >= 1 {
			t.Fatalf("fraction %v is out of range", f)
		}
		sum += f
	}
	// 5 standard errors of the mean of n uniform draws
	if mean := sum / n; math.Abs(mean-0.5) > 5/math.Sqrt(12*n) {
		t.Errorf("the mean of %d fractions is %v", n, mean)
	}
}
