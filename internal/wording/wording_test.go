package wording

import (
	"testing"
	"time"
)

func TestATextIsCutBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{"Ärzte": "Ärzte", "Ärztin": "Är…", "1ärztin": "1ä…", "12ärztin": "12…"} {
		if got := Shorten(text, 6); got != want {
			t.Errorf("%s becomes %q, want %q", text, got, want)
		}
	}
}

func TestAListNamesTheFirstAndCountsTheOthers(t *testing.T) {
	for most, want := range map[int]string{1: "a and 2 more", 2: "a, b and 1 more", 3: "a, b, c", 4: "a, b, c"} {
		if got := Some([]string{"a", "b", "c"}, most); got != want {
			t.Errorf("at most %d names: %q, want %q", most, got, want)
		}
	}
}

func TestAChoiceEndsWithOr(t *testing.T) {
	names := []string{"a", "b", "c"}
	for n, want := range []string{"", "a", "a or b", "a, b or c"} {
		if got := Or(names[:n]); got != want {
			t.Errorf("%d names: %q, want %q", n, got, want)
		}
	}
}

func TestTheNearestNameHasTheFewestMistakes(t *testing.T) {
	for word, want := range map[string]string{"naer": "near", "btf": "bft", "brokr": "broker", "Broker": "broker", "fra": "far", "sink": ""} {
		if got := Nearest(word, []string{"far", "near", "bft", "broker"}); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestAnAmountOfBytesShowsItsFigures(t *testing.T) {
	for n, want := range map[int64]string{
		5 << 30: "5.00 GiB", 1 << 30: "1.00 GiB", 1<<30 - 1<<20: "1023.00 MiB", 2_474_639: "2.36 MiB", 1 << 20: "1.00 MiB",
		300 << 10: "300.00 KiB", 100: "0.10 KiB", 0: "0.00 KiB", -3 << 29: "-1.50 GiB", -1 << 20: "-1.00 MiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}

func TestATimeIsWrittenWithoutEmptyParts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		240 * time.Hour: "240h", time.Minute: "1m", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m",
		10 * time.Second: "10s", 0: "0s", -time.Hour: "-1h", 1500 * time.Millisecond: "1.5s", time.Minute + time.Millisecond: "1m0.001s",
	} {
		if got := Time(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
