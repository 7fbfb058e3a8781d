// Package tutorial reads the steps of a tutorial from its page, so that tests do what a reader does.
//
// Comments of the page before a block of commands tell the test what it cannot know; readers do not see them.
// A block of language sh has commands. A block of language text shows what the commands before it print.
// Any other block is a file, and the text before it says its name: Save this as `NAME`.
package tutorial

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/markdown"
)

// Step is one thing that the page has its reader do.
type Step struct {
	Line     int    // where its block begins, for messages
	File     string // name of the file to save; empty for commands
	Text     string // the file's content, or the commands
	Shown    string // what the page shows of the output
	ExitCode int
	Varies   bool   // counts differ between runs too
	NotRun   string // why tests leave the commands out
}

var (
	savedAs  = regexp.MustCompile("(?i)save (?:this|it|them) as `([^`/]+)`")
	notRun   = regexp.MustCompile(`<!-- not run by the test: (.+?) -->`)
	varies   = "<!-- counts differ between runs -->"
	exitCode = regexp.MustCompile(`<!-- exit code (\d+) -->`)
)

// Steps of a page, in their order.
func Steps(page string) (steps []Step, err error) {
	for _, block := range markdown.Blocks(page) {
		before, line, text := lastParagraph(block.Before), block.Line, block.Text
		switch block.Language {
		case "sh":
			steps = append(steps, commands(line, before, text))
		case "text":
			if len(steps) == 0 || steps[len(steps)-1].File != "" || steps[len(steps)-1].Shown != "" {
				return nil, fmt.Errorf("line %d: output without commands before it", line)
			}
			if text == "" {
				return nil, fmt.Errorf("line %d: no output is shown; write ? into the block, and the tests of the tutorials with -update", line)
			}
			steps[len(steps)-1].Shown = text
		default:
			name := savedAs.FindStringSubmatch(before)
			if name == nil {
				return nil, fmt.Errorf("line %d: a block of language %q; want sh, text, or a file: Save this as `NAME`", line, block.Language)
			}
			steps = append(steps, Step{Line: line, File: name[1], Text: text})
		}
	}
	return steps, nil
}

func commands(line int, before, text string) Step {
	step := Step{Line: line, Text: text, Varies: strings.Contains(before, varies)}
	if why := notRun.FindStringSubmatch(before); why != nil {
		step.NotRun = why[1]
	}
	if code := exitCode.FindStringSubmatch(before); code != nil {
		step.ExitCode, _ = strconv.Atoi(code[1]) // digits, as the expression says
	}
	return step
}

func lastParagraph(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, strings.LastIndex(text, "\n\n")):]
}
