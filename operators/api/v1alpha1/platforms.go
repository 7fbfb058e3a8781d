package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// PlatformRanges formats ascending numbers as in ScenarioStatistics: 1-24,101.
func PlatformRanges(numbers []int) string {
	var ranges []string
	for first := 0; first < len(numbers); {
		last := first
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		text := strconv.Itoa(numbers[first])
		if last > first {
			text = fmt.Sprintf("%d-%d", numbers[first], numbers[last])
		}
		ranges = append(ranges, text)
		first = last + 1
	}
	return strings.Join(ranges, ",")
}

// HasPlatform reports whether the scenario has the platform of a number.
func (s *ScenarioStatistics) HasPlatform(number int) bool {
	return rangesHave(s.PlatformNumbers, number)
}

// HasAntennaProfile reports whether the platform of a number has an antenna profile at some time.
func (s *ScenarioStatistics) HasAntennaProfile(number int) bool {
	return rangesHave(s.AntennaProfiles, number)
}

func rangesHave(ranges string, number int) bool {
	for _, text := range strings.Split(ranges, ",") {
		first, last, isRange := strings.Cut(text, "-")
		if !isRange {
			last = first
		}
		low, errLow := strconv.Atoi(first)
		high, errHigh := strconv.Atoi(last)
		if errLow == nil && errHigh == nil && low <= number && number <= high {
			return true
		}
	}
	return false
}

// maxPlatform is the greatest number of a platform.
const maxPlatform = 65534

// ParsePlatforms reads ranges such as 1-24,101. The numbers ascend, and none comes twice.
func ParsePlatforms(ranges string) (numbers []int, err error) {
	if ranges == "" {
		return nil, nil
	}
	last := 0
	for _, text := range strings.Split(ranges, ",") {
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		low, errLow := strconv.Atoi(from)
		high, errHigh := strconv.Atoi(to)
		if errLow != nil || errHigh != nil || low <= last || high < low || high > maxPlatform {
			return nil, fmt.Errorf("platforms %q: must be ascending numbers up to %d and ranges of them, such as 1-12,25", ranges, maxPlatform)
		}
		for number := low; number <= high; number++ {
			numbers = append(numbers, number)
		}
		last = high
	}
	return numbers, nil
}
