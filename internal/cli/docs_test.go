package cli

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
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
		if name := entry.Name(); entry.IsDir() && strings.HasPrefix(name, ".") && name != ".." {
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
