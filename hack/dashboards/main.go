// Command dashboards writes Grafana's dashboards into the chart: charts/vignette/files/dashboards/*.json. Run it in the repository's root:
//
//	go run ./hack/dashboards
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

const folder = "charts/vignette/files/dashboards"

func main() {
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil { //nolint:gosec // a file of the repository, for everybody
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// files returns every dashboard by its file name.
func files() map[string][]byte {
	made := map[string][]byte{}
	for _, d := range []dashboard{experiment(), campaign(), platform()} {
		text, err := json.MarshalIndent(d.model(), "", "  ")
		if err != nil {
			panic(err) // plain values only
		}
		made[d.file] = append(text, '\n')
	}
	return made
}
