package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// consolePages are those of the web console that show or do the same as a command, by their titles there; empty for a command
// without one. A tab or button of the page of an experiment or run is "LABEL of an experiment" or "LABEL of a run".
var consolePages = map[string]string{
	"campaign list":    "Experiments",
	"campaign report":  "Compare runs",
	"campaign results": "Campaign NAME",
	"campaign resume":  "Campaign NAME",
	"campaign status":  "Campaign NAME",
	"campaign suspend": "Campaign NAME",
	"capacity":         "Experiments",
	"capture":          "Captures of an experiment",
	"compare":          "Compare runs",
	"completion":       "",
	"console":          "",
	"doctor":           "",
	"help":             "",
	"logs":             "Logs of an experiment",
	"report":           "Report of a run",
	"rerun":            "Clone of an experiment",
	"results":          "Run UID",
	"run":              "New experiment",
	"runs delete":      "",
	"runs list":        "Archived runs",
	"scenario inspect": "Scenario editor",
	"scenario push":    "",
	"set":              "Map of an experiment",
	"shell":            "Terminal of an experiment",
	"ssh":              "",
	"status":           "Experiments",
	"stop":             "Stop of an experiment",
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
