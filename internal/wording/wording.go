// Package wording has the turns of phrase that messages to users share.
package wording

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// InParentheses is a text in parentheses to append; empty if the text is.
func InParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// Some lists at most so many names, and the number of the others.
func Some(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Or is a, b or c.
func Or(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Shorten cuts a text between characters to so many bytes.
func Shorten(text string, most int) string {
	const cut = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(cut)], "") + cut
}

// DidYouMean asks for the nearest of the known names, or lists them if none is near.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return ": " + Meant(near)
	}
	if len(known) == 0 {
		return ": there is none"
	}
	return ": use one of " + strings.Join(known, ", ")
}

// Meant is the question whether a word was meant; empty without one.
func Meant(near string) string {
	if near == "" {
		return ""
	}
	return "did you mean " + near + "?"
}

// Nearest of the names to a misspelt word by the number of edits, if any is near at all; empty otherwise.
func Nearest(word string, names []string) string {
	best, fewest := "", max(1, min(3, len(word)/2))+1
	for _, name := range names {
		if longer := len(word) - len(name); max(longer, -longer) >= fewest {
			continue // a text of any length takes no time
		}
		if n := edits(strings.ToLower(word), strings.ToLower(name)); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// edits is Levenshtein's distance, where two letters in each other's place count as one edit.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, rows[i-2][j-2]+1)
			}
			rows[i][j] = min(cost, rows[i-1][j]+1, rows[i][j-1]+1)
		}
	}
	return rows[len(a)][len(b)]
}

// Time as a user writes it: 240h, not 240h0m0s.
func Time(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Bytes in the largest unit that shows at least one of it, from KiB to GiB.
func Bytes(n int64) string {
	size := math.Abs(float64(n))
	switch {
	case size >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case size >= 1<<20:
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f KiB", float64(n)/(1<<10))
}
