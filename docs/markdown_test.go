package docs

import (
	"regexp"
	"strings"

	"vignette.dev/vignette/internal/markdown"
)

var (
	comment   = regexp.MustCompile(`(?s)<!--.*?-->`)
	image     = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	link      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	span      = regexp.MustCompile("`[^`]*`")
	listItem  = regexp.MustCompile(`^ *([-*]|[0-9]+\.) `)
	rule      = regexp.MustCompile(`^[|:\- ]+$`)
	emphasis  = strings.NewReplacer("**", "", "*", "", "__", "")
	shortened = regexp.MustCompile(`\b(e\.g|i\.e|cf|vs|etc|approx|No)\.$`)
	ends      = regexp.MustCompile(`[.!?]["')]*$`)
)

// sentences returns those of a page of Markdown, without code. A heading, an item of a list and a cell of a table each end one.
func sentences(page string) (all []string) {
	page = comment.ReplaceAllString(markdown.WithoutBlocks(page), "")
	var block []string
	flush := func() {
		all = append(all, split(strings.Join(block, " "))...)
		block = nil
	}
	inText := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch code := strings.HasPrefix(line, "    ") && !inText; {
		case strings.TrimSpace(line) == "":
			flush()
			inText = false
		case code:
		case strings.HasPrefix(line, "#"):
			flush()
			all = append(all, split(strings.TrimLeft(line, "# "))...)
		case strings.HasPrefix(line, "|"):
			flush()
			if !rule.MatchString(line) {
				all = append(all, cells(line)...)
			}
		default:
			if listItem.MatchString(line) {
				flush()
				line = listItem.ReplaceAllString(line, "")
			}
			inText = true
			block = append(block, strings.TrimSpace(line))
		}
	}
	flush()
	return all
}

// cells of a row. A vertical bar within code is none between cells.
func cells(row string) (all []string) {
	row = span.ReplaceAllString(row, "`code`")
	for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		all = append(all, split(cell)...)
	}
	return all
}

// split a block into its sentences, as a reader sees them.
func split(block string) (all []string) {
	block = image.ReplaceAllString(block, "")
	block = span.ReplaceAllString(block, "code")
	block = link.ReplaceAllString(block, "$1")
	var sentence []string
	for word := range strings.FieldsSeq(emphasis.Replace(block)) {
		sentence = append(sentence, word)
		if ends.MatchString(word) && !shortened.MatchString(word) {
			all = append(all, strings.Join(sentence, " "))
			sentence = nil
		}
	}
	if sentence != nil {
		all = append(all, strings.Join(sentence, " "))
	}
	return all
}
