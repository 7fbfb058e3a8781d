package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vignette.dev/vignette/internal/golden"
)

// everyCommand visits the whole tree, as one subtest each.
func everyCommand(t *testing.T, check func(*testing.T, *cobra.Command)) {
	t.Helper()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		t.Run(strings.ReplaceAll(c.CommandPath(), " ", "-"), func(t *testing.T) { check(t, c) })
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(newRoot("test", "vignette", io.Discard))
}

func TestEveryCommandExplainsItselfWithAnExample(t *testing.T) {
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		for what, text := range map[string]string{"short description": c.Short, "long description": c.Long, "example": c.Example} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("it has no %s", what)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("--%s has no description", f.Name)
			}
		})
	})
}

func TestTheHelpOfACommandEndsWithItsPageOfTheConsole(t *testing.T) {
	named := map[string]bool{}
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		if c.HasSubCommands() && c.Name() != "completion" || c.HasParent() && c.Parent().Name() == "completion" {
			return
		}
		page, known := pageOf(c)
		if !known {
			t.Error("consolePages does not say whether the web console has a page for it")
		}
		if line := "\nIn the web console (vignette ui): " + page + "."; page != "" && !strings.HasSuffix(c.Long, line) {
			t.Errorf("its help does not end with %q:\n%s", line, c.Long)
		}
		named[strings.TrimPrefix(c.CommandPath(), "vignette ")] = true
	})
	for command := range consolePages {
		if !named[command] {
			t.Errorf("consolePages has %q, which is no command", command)
		}
	}
}

// labels that the console has in the TypeScript files of a folder: texts in quotation marks, and texts alone in a line.
func labels(t *testing.T, folder string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	quoted := regexp.MustCompile("[\"`]([^\"`]+)[\"`]")
	files, err := filepath.Glob(filepath.Join("../../console/src", folder, "*.ts*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s, error %v", len(files), folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			found[strings.TrimSpace(line)] = true
			for _, match := range quoted.FindAllStringSubmatch(line, -1) {
				found[match[1]] = true
			}
		}
	}
	return found
}

func TestThePagesOfTheHelpHaveTheirTitlesInTheConsole(t *testing.T) {
	titles, ofExperiment, ofRun := labels(t, "app"), labels(t, "pages/experiment"), labels(t, "pages/results")
	for command, page := range consolePages {
		label, known := page, titles
		if cut, is := strings.CutSuffix(page, " of an experiment"); is {
			label, known = cut, ofExperiment
		} else if cut, is := strings.CutSuffix(page, " of a run"); is {
			label, known = cut, ofRun
		} else { // page.ts adds the namespace
			label = strings.NewReplacer("NAME", "${name} in ${namespace}", "UID", "${uid} in ${namespace}").Replace(page)
		}
		if page != "" && !known[label] {
			t.Errorf("the help of %q names the page %q, but the console has no %q there", command, page, label)
		}
	}
}

func TestEveryFlagAndArgumentIsCompletedOrKnownToBeFree(t *testing.T) {
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if _, found := c.GetFlagCompletionFunc(f.Name); !found && f.Value.Type() != "bool" && f.Name != "write" {
				t.Errorf("--%s would offer the files of the folder: complete it, or say that it takes anything", f.Name)
			}
		})
		if c.ValidArgsFunction == nil && !c.HasSubCommands() {
			t.Error("its arguments would offer the files of the folder")
		}
	})
}

// words of a command line as a shell would split it: up to a pipe or a redirection, quotes taken away.
func words(line string) (words []string) {
	quote, word, begun := rune(0), "", false
	for _, r := range line {
		switch {
		case quote == 0 && (r == '|' || r == '>' || r == ')'):
			if begun {
				words = append(words, word)
			}
			return words
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == r:
			quote = 0
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	if begun {
		words = append(words, word)
	}
	return words
}

func TestExamplesAreCommandLinesThatWork(t *testing.T) {
	everyCommand(t, func(t *testing.T, documented *cobra.Command) {
		for line := range strings.Lines(documented.Example) {
			at := strings.Index(line, "vignette ")
			if at < 0 {
				t.Errorf("example %q does not call vignette", line)
				continue
			}
			root := newRoot("test", "vignette", io.Discard)
			c, rest, err := root.Find(words(strings.TrimSpace(line[at:]))[1:])
			if err != nil || c == root {
				t.Errorf("example %q calls no command: %v", line, err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("example %q: %v", line, err)
			}
			if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("example %q: %v", line, err)
			}
			if documented.HasParent() && c.CommandPath() != documented.CommandPath() && documented.Name() != "help" && !documented.HasSubCommands() {
				t.Errorf("example %q is one of %s", line, c.CommandPath())
			}
		}
	})
}

func TestHelpIsAsAccepted(t *testing.T) {
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		if c.HasParent() && c.Parent().Name() == "completion" {
			return // the library's own words, which change with it
		}
		args := strings.Fields(c.CommandPath())
		var out, errs bytes.Buffer
		if code := Main("test", append(args, "--help"), strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		golden.Check(t, "help/"+strings.Join(args, "-")+".txt", out.String())
	})
}

func TestEveryShellGetsItsCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errs bytes.Buffer
		code := Main("test", []string{"vignette", "completion", shell}, strings.NewReader(""), &out, &errs)
		if code != 0 || !strings.Contains(out.String(), "__complete") {
			t.Errorf("completion %s: exit code %d, %d bytes, %s", shell, code, out.Len(), errs.String())
		}
	}
}
