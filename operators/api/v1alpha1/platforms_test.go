package v1alpha1

import "testing"

func TestPlatformNumbersAreWrittenAsRangesAndFoundInThem(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "7": {7}, "1-3": {1, 2, 3}, "1-2,4,9-10": {1, 2, 4, 9, 10}} {
		s := ScenarioStatistics{PlatformNumbers: PlatformRanges(numbers)}
		if s.PlatformNumbers != want {
			t.Errorf("%v is %q, want %q", numbers, s.PlatformNumbers, want)
		}
		has := map[int]bool{}
		for _, n := range numbers {
			has[n] = true
		}
		for n := range 12 {
			if s.HasPlatform(n) != has[n] {
				t.Errorf("%q: platform %d is there: %t, want %t", want, n, s.HasPlatform(n), has[n])
			}
		}
	}
}
