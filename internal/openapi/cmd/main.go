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
	for file, api := range map[string]openapi.API{"internal/runapi/openapi.json": openapi.Archive(), "internal/console/openapi.json": openapi.Console()} {
		text, err := openapi.Describe(api)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
