package wire

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Time formats a time as XML Schema's dateTime, in UTC with milliseconds.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Duration formats a duration as XML Schema's duration.
func Duration(d time.Duration) string {
	return "PT" + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S"
}

var duration = regexp.MustCompile(`^(-)?P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$`)

// latest is the furthest termination time: later ones, and none at all, become this.
const latest = 100 * 365 * 24 * time.Hour

// ParseTermination reads a TerminationTime: an absolute dateTime, or a duration from now. An empty one is zero: none.
func ParseTermination(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	if parts := duration.FindStringSubmatch(text); parts != nil && !strings.HasSuffix(text, "T") && !strings.HasSuffix(text, "P") {
		return fromDuration(parts, now), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} { // without a zone: UTC
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q: want a dateTime or a duration of XML Schema, such as PT60S", text)
}

func fromDuration(parts []string, now time.Time) time.Time {
	number := func(i int) int {
		n, _ := strconv.Atoi(parts[i]) // empty is 0
		return min(n, 1_000_000)
	}
	seconds, _ := strconv.ParseFloat(parts[8], 64)
	sign := 1
	if parts[1] != "" {
		sign = -1
	}
	at := now.AddDate(sign*min(number(2), 1000), sign*min(number(3), 12000), sign*number(4))
	at = at.Add(time.Duration(sign) * (time.Duration(number(6))*time.Hour + time.Duration(number(7))*time.Minute + time.Duration(min(seconds, 1e9)*float64(time.Second))))
	if limit := now.Add(latest); at.After(limit) {
		return limit
	}
	return at
}
