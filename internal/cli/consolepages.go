package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// consolePages are those of the web console that show or do the same as a command; empty for a command without one.
var consolePages = map[string]string{
	"campaign list":    "Experiments",
	"campaign report":  "Compare runs",
	"campaign results": "the campaign's page",
	"campaign resume":  "the campaign's page",
	"campaign status":  "the campaign's page",
	"campaign suspend": "the campaign's page",
	"capacity":         "Experiments",
	"capture":          "Captures of an experiment",
	"compare":          "Compare runs",
	"completion":       "",
	"console":          "",
	"doctor":           "",
	"help":             "",
	"logs":             "Logs of an experiment",
	"report":           "Report of a run's results",
	"rerun":            "Clone of an experiment",
	"results":          "a run's results",
	"run":              "New experiment",
	"scenario inspect": "Scenario editor",
	"scenario push":    "",
	"set":              "Map of an experiment",
	"shell":            "Terminal of an experiment",
	"ssh":              "",
	"status":           "Experiments",
	"stop":             "the experiment's page",
	"ui":               "",
	"validate":         "New experiment",
	"version":          "",
}

// pageOf a command in the web console. known is false for a command of which nobody has said whether it has one.
func pageOf(cmd *cobra.Command) (page string, known bool) {
	_, name, _ := strings.Cut(cmd.CommandPath(), "vignette ")
	page, known = consolePages[name]
	return page, known
}

// namePages ends the help of each command that has a page in the web console with the page's name.
func namePages(cmd *cobra.Command) {
	if page, _ := pageOf(cmd); page != "" {
		cmd.Long = strings.TrimRight(cmd.Long, "\n") + "\nIn the web console (vignette ui): " + page + "."
	}
	for _, child := range cmd.Commands() {
		namePages(child)
	}
}
