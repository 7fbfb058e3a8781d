// Command vignette runs experiments and reads their results. Installed as kubectl-vignette it is
// also a kubectl plugin: kubectl vignette …
package main

import (
	"os"

	"vignette.dev/vignette/internal/cli"
)

var version = "dev"

func main() { os.Exit(cli.Main(version, os.Args, os.Stdin, os.Stdout, os.Stderr)) }
