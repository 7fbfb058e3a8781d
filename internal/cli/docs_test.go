package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/markdown"
)

var (
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	markup  = regexp.MustCompile("[`*]|\\]\\([^)]*\\)|\\[")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	inRepo  = regexp.MustCompile(`\bscenarios/[\w./-]*[\w/]`)
)

// anchors of a page's headings, as they are linked to.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		plain := noSlug.ReplaceAllString(strings.ToLower(markup.ReplaceAllString(m[1], "")), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}

func TestEveryRelativeLinkOfAPageLeadsSomewhere(t *testing.T) {
	root, links := "../..", 0
	err := filepath.WalkDir(root, func(page string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(page) != ".md" {
			return nil
		}
		for _, m := range mdLink.FindAllStringSubmatch(code.ReplaceAllString(readText(t, page), ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], ":") {
				continue // another site
			}
			links++
			target := page
			if file != "" {
				target = path.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if anchor != "" && filepath.Ext(target) == ".md" && !anchors(readText(t, target))[anchor] {
				t.Errorf("%s links to %s, and that page has no such heading", page, m[1])
			}
		}
		return nil
	})
	if err != nil || links < 100 {
		t.Errorf("%d links were looked at: %v", links, err)
	}
}

func TestExamplesOfCommandsNameFilesThatAreThere(t *testing.T) {
	named := 0
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, file := range inRepo.FindAllString(cmd.Example+"\n"+cmd.Long, -1) {
			named++
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Errorf("%s --help names %s, which is not there", cmd.CommandPath(), file)
			}
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(Command())
	if named < 3 {
		t.Errorf("%d files are named", named)
	}
}

// codeLine is a line of a block of code that begins with the command, inlineCode one in running text.
var (
	codeLine   = regexp.MustCompile(`(?m)^(?: {4}|\t)?(?:\$ )?(?:bin/|kubectl )?vignette (.*)$`)
	inlineCode = regexp.MustCompile("`(?:kubectl )?vignette ([^`\n]+)`")
	// synopsis is a line with what may be left out, or with several commands.
	synopsis = regexp.MustCompile(`\[|\w, \w`)
	comment  = regexp.MustCompile(`\s+#.*$`)
)

// parsed says what is wrong with the words after vignette; whole tells that they are a whole command line, not one that is spoken of.
func parsed(line string, whole bool) error {
	root := newRoot("test", "vignette", io.Discard)
	args := words(strings.TrimSuffix(strings.TrimSpace(comment.ReplaceAllString(line, "")), "&"))
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if c == root {
		return errors.New("it names no command")
	}
	if err := c.ParseFlags(rest); err != nil || !whole {
		if !whole && err != nil && strings.Contains(err.Error(), "flag needs an argument") {
			return nil // a flag that is spoken of
		}
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}

func TestEveryCommandOfTheDocsParses(t *testing.T) {
	lines := 0
	err := filepath.WalkDir("../..", func(page string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "reference") {
			return filepath.SkipDir
		}
		if filepath.Ext(page) != ".md" {
			return nil
		}
		text := readText(t, page)
		blocks := indented(text)
		for _, block := range markdown.Blocks(text) {
			if slices.Contains([]string{"", "sh", "bash", "console"}, block.Language) {
				blocks += block.Text
			}
		}
		for _, m := range codeLine.FindAllStringSubmatch(blocks, -1) {
			if lines++; synopsis.MatchString(comment.ReplaceAllString(m[1], "")) {
				continue
			}
			if err := parsed(m[1], true); err != nil {
				t.Errorf("%s: vignette %s: %v", page, m[1], err)
			}
		}
		for _, m := range inlineCode.FindAllStringSubmatch(markdown.WithoutBlocks(text), -1) {
			lines++
			if err := parsed(m[1], false); err != nil {
				t.Errorf("%s: `vignette %s`: %v", page, m[1], err)
			}
		}
		return nil
	})
	if err != nil || lines < 100 {
		t.Errorf("%d commands were looked at: %v", lines, err)
	}
}

// indented blocks of a page: lines of four spaces after an empty line, or after such lines.
func indented(text string) string {
	var b strings.Builder
	empty, inside := true, false
	for line := range strings.Lines(text) {
		inside = strings.HasPrefix(line, "    ") && (empty || inside)
		if inside {
			b.WriteString(line)
		}
		empty = strings.TrimSpace(line) == ""
	}
	return b.String()
}
