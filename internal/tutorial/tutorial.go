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
	block    = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	savedAs  = regexp.MustCompile("(?i)save (?:this|it|them) as `([^`/]+)`")
	notRun   = regexp.MustCompile(`<!-- not run by the test: (.+?) -->`)
	varies   = "<!-- counts differ between runs -->"
	exitCode = regexp.MustCompile(`<!-- exit code (\d+) -->`)
)

// Steps of a page, in their order.
func Steps(page string) (steps []Step, err error) {
	end := 0
	for _, at := range block.FindAllStringSubmatchIndex(page, -1) {
		before, language, text := page[end:at[0]], page[at[2]:at[3]], page[at[4]:at[5]]
		line := 1 + strings.Count(page[:at[0]], "\n")
		end = at[1]
		switch language {
		case "sh":
			steps = append(steps, commands(line, before, text))
		case "text":
			if len(steps) == 0 || steps[len(steps)-1].File != "" || steps[len(steps)-1].Shown != "" {
				return nil, fmt.Errorf("line %d: output without commands before it", line)
			}
			steps[len(steps)-1].Shown = text
		default:
			name := savedAs.FindStringSubmatch(lastParagraph(before))
			if name == nil {
				return nil, fmt.Errorf("line %d: a block of language %q; want sh, text, or a file: Save this as `NAME`", line, language)
			}
			steps = append(steps, Step{Line: line, File: name[1], Text: text})
		}
	}
	return steps, nil
}

func commands(line int, before, text string) Step {
	step := Step{Line: line, Text: text, Varies: strings.Contains(lastParagraph(before), varies)}
	if why := notRun.FindStringSubmatch(lastParagraph(before)); why != nil {
		step.NotRun = why[1]
	}
	if code := exitCode.FindStringSubmatch(lastParagraph(before)); code != nil {
		step.ExitCode, _ = strconv.Atoi(code[1]) // digits, as the expression says
	}
	return step
}

func lastParagraph(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, strings.LastIndex(text, "\n\n")):]
}
