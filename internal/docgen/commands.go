package docgen

import (
	"strings"

	"github.com/spf13/cobra"
)

// Commands is the reference of a command and its subcommands, on one page.
func Commands(root *cobra.Command) string {
	p := &page{}
	p.line("# %s", root.Name())
	p.line("")
	p.line("<!-- generated from the command by make generate -->")
	p.line("")
	p.line("%s", oneLine(root.Long))
	p.line("\nAll commands take these flags:\n")
	p.code(root.PersistentFlags().FlagUsages())
	for _, command := range root.Commands() {
		p.command(command)
	}
	return p.text.String()
}

func (p *page) command(c *cobra.Command) {
	if c.Hidden {
		return
	}
	p.line("\n## %s\n", c.CommandPath())
	p.line("%s.\n", c.Short)
	p.code(c.UseLine())
	if c.Long != "" {
		p.line("\n%s", strings.TrimSpace(c.Long))
	}
	if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		p.line("")
		p.code(flags.FlagUsages())
	}
	if c.Example != "" {
		p.line("\nExamples:\n")
		p.code(c.Example)
	}
	if c.Name() == "completion" {
		return // the pages of the shells are very long, and --help has them
	}
	for _, child := range c.Commands() {
		p.command(child)
	}
}

// code writes a block of unchanged text.
func (p *page) code(text string) { p.line("```\n%s\n```", strings.Trim(text, "\n")) }
