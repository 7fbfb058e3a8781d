// plots draws the pictures of docs/reference/radio with the code that they illustrate: `go run ./hack/plots` writes all of them. Its test
// fails if a committed picture differs from the code's.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// directory has the pictures, from the repository's root.
const directory = "docs/reference/radio"

// plots has the plots by file name without .svg. Each file of this package adds its own.
var plots = map[string]func() (*Chart, error){}

func main() {
	for name, plot := range plots {
		if err := write(name, plot); err != nil {
			fmt.Fprintf(os.Stderr, "plots: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func write(name string, plot func() (*Chart, error)) error {
	c, err := plot()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, name+".svg"), []byte(c.SVG()), 0o644) //nolint:gosec // public
}
