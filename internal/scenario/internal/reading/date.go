package reading

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Forms of dates besides RFC 3339. Those without a zone are in UTC.
var forms = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02"}

// leapSecond matches the second 60, a leap second of UTC. Seconds since 1970 count it as the next one.
var leapSecond = regexp.MustCompile(`^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:)60`)

// CheckYear refuses dates whose nanoseconds since 1970 would not fit.
func CheckYear(at time.Time) error {
	if at.Year() < 1950 || at.Year() > 2200 {
		return errors.New("want a year from 1950 to 2200")
	}
	return nil
}

// Date parses a date and time, since 1970. A date without a zone is in UTC, and zoned is false.
func Date(text string) (since time.Duration, zoned bool, err error) {
	text = strings.TrimSpace(text)
	common, leap := leapSecond.ReplaceAllString(text, "${1}59"), 0*time.Second
	if common != text {
		leap = time.Second
	}
	for _, form := range forms {
		at, err := time.Parse(form, common)
		if err != nil {
			continue
		}
		at = at.Add(leap)
		if err := CheckYear(at); err != nil {
			return 0, false, fmt.Errorf("time is %q: %w", Short([]byte(text)), err)
		}
		return time.Duration(at.UnixNano()), strings.Contains(form, "Z07"), nil
	}
	return 0, false, fmt.Errorf("time is %q: want one such as 2026-01-31T12:00:00Z", Short([]byte(text)))
}
