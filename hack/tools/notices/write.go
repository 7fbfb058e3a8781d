package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const head = `vignette
Copyright The vignette Authors

Licensed under the Apache License, Version 2.0; see LICENSE.

The programs contain the Go modules and the npm packages below, whose licences follow. The image of the analysis contains the Python packages. These, the packages of Debian and the jars
in images bring the texts of their licences with them. This file is written by hack/notice.
`

// write writes a list of the works, then the texts that the programs do not contain. Each text appears once, with its works' names.
func write(out io.Writer, modules, npm, python []work) error {
	w := bufio.NewWriter(out)
	fmt.Fprint(w, head)
	list(w, "Go modules", modules)
	list(w, "npm packages", npm)
	list(w, "Python packages", python)
	owners := map[string][]string{}
	var order []string
	for _, work := range slices.Concat(modules, npm) {
		for _, name := range slices.Sorted(maps.Keys(work.texts)) {
			text := strings.TrimSpace(work.texts[name])
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], work.name)
		}
	}
	for _, text := range order {
		fmt.Fprintf(w, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 100), strings.Join(owners[text], "\n"), text)
	}
	return w.Flush()
}

func list(w io.Writer, title string, works []work) {
	fmt.Fprintf(w, "\n%s\n\n", title)
	for _, work := range works {
		fmt.Fprintf(w, "    %s %s: %s\n", work.name, work.version, work.licence)
	}
}
