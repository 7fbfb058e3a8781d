// Package nearest finds what a misspelt name was most likely meant to be.
package nearest

import "strings"

// Of names the nearest to a word by the number of edits, if any is near at all; empty otherwise.
func Of(word string, names []string) string {
	best, fewest := "", max(1, min(3, len(word)/2))+1
	for _, name := range names {
		if n := edits(strings.ToLower(word), strings.ToLower(name)); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// edits is Levenshtein's distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
