// Package docs holds the documentation; its tests hold the wording of the pages for users.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/validate"
)

const (
	// mostWords of a sentence.
	mostWords = 25
	// mostTerms keeps the glossary a page that people read.
	mostTerms = 80
	// mostUserWords is how long the pages for users may be altogether.
	mostUserWords = 30_000
)

// privateWords have a plain one that readers know from elsewhere. Glossary and API use the plain one.
var privateWords = map[*regexp.Regexp]string{
	regexp.MustCompile(`(?i)\breckon(s|ed|ing)?\b`):                         "compute",
	regexp.MustCompile(`(?i)\bheed(s|ed)?\b`):                               "check, obey",
	regexp.MustCompile(`(?i)\bsalvag(e|es|ed|ing)\b`):                       "keep, archive",
	regexp.MustCompile(`(?i)\bwidow(s|ed)?\b`):                              "orphan",
	regexp.MustCompile(`(?i)\bdoom(s|ed)?\b`):                               "bound to fail",
	regexp.MustCompile(`(?i)\bhopeless\b`):                                  "unrecoverable",
	regexp.MustCompile(`(?i)\bstrays?\b`):                                   "unexpected, foreign",
	regexp.MustCompile(`(?i)\boutlook\b`):                                   "forecast",
	regexp.MustCompile(`(?i)\b(reck|betwixt|thereof|therein|wherein)\b`):    "say it in a plain word",
	regexp.MustCompile(`(?i)\bstrangers?\b`):                                "foreign pod, foreign program",
	regexp.MustCompile(`(?i)\b(utili[sz]e|leverage|seamless(ly)?)(s|d)?\b`): "use; or leave it out",
}

// pages that people write, by their paths from this folder, without the decisions.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../scenarios/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, "../README.md", "../CHANGELOG.md", "../CONTRIBUTING.md", "../SECURITY.md", "../GOVERNANCE.md", "../analysis/README.md", "../scenarios/README.md")
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == "adr" {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" && !generated(t, path) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) < 20 {
		t.Fatalf("%d pages, %v; want all of them", len(found), err)
	}
	return found
}

// generated reports whether a program writes the page.
func generated(t *testing.T, page string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "<!-- generated ")
}

// forUsers reports whether people read the page from top to bottom, other than the reference, measurements and contributors' pages.
func forUsers(page string) bool {
	return page == "../README.md" || page != "architecture.md" && !regexp.MustCompile(`^(reference/|measurements/|\.\./)`).MatchString(page)
}

func TestUsersHaveLittleToRead(t *testing.T) {
	words := 0
	for _, page := range pages(t) {
		if text, err := os.ReadFile(page); err != nil {
			t.Error(err)
		} else if forUsers(page) {
			words += len(strings.Fields(string(text)))
		}
	}
	if words > mostUserWords {
		t.Errorf("the pages for users have %d words; want at most %d", words, mostUserWords)
	}
}

func prose(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return sentences(string(text))
}

func TestSentencesAreShort(t *testing.T) {
	for _, page := range pages(t) {
		for _, s := range prose(t, page) {
			if n := len(strings.Fields(s)); n > mostWords {
				t.Errorf("%s has a sentence of %d words; want at most %d: %s", page, n, mostWords, s)
			}
		}
	}
}

func TestEveryPageIsInAFolderByItsPurpose(t *testing.T) {
	single := []string{"README.md", "architecture.md", "concepts.md", "console.md", "glossary.md"}
	folders := []string{"tutorials", "how-to", "reference", "measurements", "adr", "notebooks"}
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "../") || slices.Contains(single, page) {
			continue
		}
		if folder, _, _ := strings.Cut(page, "/"); !slices.Contains(folders, folder) {
			t.Errorf("%s is in none of %s", page, strings.Join(folders, ", "))
		}
	}
}

func TestPagesUsePlainWords(t *testing.T) {
	for _, page := range pages(t) {
		for _, s := range prose(t, page) {
			for word, plain := range privateWords {
				if found := word.FindString(s); found != "" {
					t.Errorf("%s: %q: want %s, in: %s", page, found, plain, s)
				}
			}
		}
	}
}

func TestTheExperimentOfTheREADMEIsValid(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	_, experiment, _ := strings.Cut(string(text), "```yaml\n")
	experiment, _, _ = strings.Cut(experiment, "```\n")
	if report := validate.Text("README.md", []byte(experiment)); err != nil || report.Failed() || len(report.Objects) != 1 {
		t.Errorf("%d objects, findings %v, %v; want one object without findings", len(report.Objects), report.Findings, err)
	}
}

func TestEveryPageIsInTheNavigation(t *testing.T) {
	text, err := os.ReadFile("../hack/site/mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		if path := filepath.Join("docs", page); path != "analysis/README.md" && !strings.Contains(string(text), ": "+path+"\n") {
			t.Errorf("hack/site/mkdocs.yml has no place for %s", path)
		}
	}
}

func TestTheGlossaryHasOneMeaningForAWord(t *testing.T) {
	text, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(string(text), -1) {
		if m[1] == "term" {
			continue
		}
		for term := range strings.SplitSeq(m[1], ", ") {
			if seen[term] {
				t.Errorf("%s is explained twice", term)
			}
			seen[term] = true
		}
	}
	if len(seen) < 40 || len(seen) > mostTerms+4 { // four measuring points have one line
		t.Errorf("%d terms; want at most %d", len(seen), mostTerms)
	}
}

func TestSentencesAreFoundInMarkdown(t *testing.T) {
	got := sentences("# A *title*\n\nOne [link](x.md), `a b c` and 3.5 m,\ne.g. this. Two! \"Three.\" Four\n\n```\ncode. code\n```\n\n    more code.\n\n- item one. Item two\n  goes on\n- next\n\n| a | b. c |\n|---|---|\n| 1 | 2 |\n")
	want := []string{"A title", "One link, code and 3.5 m, e.g. this.", "Two!", `"Three."`, "Four", "item one.", "Item two goes on", "next", "a", "b.", "c", "1", "2"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
