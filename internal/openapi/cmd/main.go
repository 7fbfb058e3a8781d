// Command cmd writes the descriptions of the HTTP APIs. It runs in the module's folder, whose sources it reads.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"vignette.dev/vignette/internal/openapi"
)

func main() {
	out := flag.String("out", ".", "the `folder` in which the module's files are written")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func write(out string) error {
	text, err := openapi.Describe(openapi.Archive())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "internal/runapi/openapi.json"), text, 0o644)
}
