// Package markdown finds blocks of code in pages of documentation.
package markdown

import (
	"regexp"
	"strings"
)

// Block is fenced code.
type Block struct {
	Language string
	Text     string
	Before   string // the page between the block before and this one
	Line     int    // of the opening fence
}

var fence = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")

// Blocks of a page, in their order.
func Blocks(page string) (blocks []Block) {
	end := 0
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		line := 1 + strings.Count(page[:at[0]], "\n")
		blocks = append(blocks, Block{Language: page[at[2]:at[3]], Text: page[at[4]:at[5]], Before: page[end:at[0]], Line: line})
		end = at[1]
	}
	return blocks
}

// WithoutBlocks is a page without its fenced code.
func WithoutBlocks(page string) string { return fence.ReplaceAllString(page, "") }
