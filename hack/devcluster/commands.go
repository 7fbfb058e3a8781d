package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/hack/devcluster/cluster"
	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
	"vignette.dev/vignette/hack/devcluster/store"
)

const defaultName = "default"

// source is the folder hack/devcluster, as the launcher sets it.
func source() string { return os.Getenv("DEVCLUSTER_SOURCE") }

func repository() string { return filepath.Dir(filepath.Dir(source())) }

// parse reads a command's flags; name is the cluster's.
func parse(flags *flag.FlagSet, arguments []string) (name string, rest []string) {
	flags.StringVar(&name, "name", defaultName, "name of the cluster")
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	_ = flags.Parse(arguments) // ExitOnError
	return name, flags.Args()
}

func flagSet(command string) *flag.FlagSet { return flag.NewFlagSet(command, flag.ExitOnError) }

func noArguments(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	return nil
}

func up(ctx context.Context, home store.Home, arguments []string) error {
	flags := flagSet("up")
	nodes := flags.Int("nodes", 0, "number of nodes")
	with := flags.String("with", "", "add-ons, separated by commas")
	name, rest := parse(flags, arguments)
	c, err := cluster.Open(home, name, source())
	if err = errors.Join(err, noArguments(rest)); err != nil {
		return err
	}
	if *nodes < 0 {
		return fmt.Errorf("--nodes %d: want at least 1", *nodes)
	}
	steps := c.UpSteps(*nodes)
	if *with != "" {
		more, err := c.AddOnSteps(strings.Split(*with, ","))
		if err != nil {
			return err
		}
		steps = append(steps, more...)
	}
	began := time.Now()
	if err := progress.New(os.Stderr).Run(ctx, steps); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "cluster %s is up (%s). Use it: eval \"$(hack/cluster env%s)\"\n", name, progress.Short(time.Since(began)), nameFlag(name))
	return nil
}

func nameFlag(name string) string {
	if name == defaultName {
		return ""
	}
	return " --name " + name
}

func down(ctx context.Context, home store.Home, arguments []string) error {
	flags := flagSet("down")
	purge := flags.Bool("purge", false, "remove the cluster's data too")
	name, rest := parse(flags, arguments)
	c, err := cluster.Open(home, name, source())
	if err = errors.Join(err, noArguments(rest)); err != nil {
		return err
	}
	return progress.New(os.Stderr).Run(ctx, c.DownSteps(*purge))
}

func buildAll(ctx context.Context, home store.Home, arguments []string) error {
	name, rest := parse(flagSet("build"), arguments)
	c, err := cluster.Open(home, name, source())
	if err = errors.Join(err, noArguments(rest)); err != nil {
		return err
	}
	steps := append(c.BuildSteps(), repositoryImages(home).BaseSteps()...)
	return progress.New(os.Stderr).Run(ctx, steps)
}

func status(ctx context.Context, home store.Home, arguments []string) error {
	name, rest := parse(flagSet("status"), arguments)
	c, err := cluster.Open(home, name, source())
	if err = errors.Join(err, noArguments(rest)); err != nil {
		return err
	}
	text, err := c.Status(ctx)
	fmt.Print(text)
	return err
}

func environment(_ context.Context, home store.Home, arguments []string) error {
	name, rest := parse(flagSet("env"), arguments)
	c, err := cluster.Open(home, name, source())
	if err = errors.Join(err, noArguments(rest)); err != nil {
		return err
	}
	if _, err := os.Stat(c.Kubeconfig()); err != nil {
		return fmt.Errorf("%w: %q (hack/cluster up%s makes it)", cluster.ErrNone, name, nameFlag(name))
	}
	fmt.Printf("export KUBECONFIG=%s\n", quote(c.Kubeconfig()))
	fmt.Printf("export PATH=%s:%s:\"$PATH\"\n", quote(c.Bin()), quote(filepath.Join(repository(), "bin")))
	return nil
}

// quote quotes a word for a shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func load(ctx context.Context, home store.Home, arguments []string) error {
	name, wanted := parse(flagSet("load"), arguments)
	if len(wanted) == 0 {
		return errors.New("which image? want names in buildah's storage, or archive files")
	}
	c, err := cluster.Open(home, name, source())
	if err != nil {
		return err
	}
	return progress.New(os.Stderr).Run(ctx, c.LoadSteps(wanted))
}

func enter(_ context.Context, home store.Home, arguments []string) error {
	name, rest := parse(flagSet("enter"), arguments)
	c, err := cluster.Open(home, name, source())
	if err != nil {
		return err
	}
	number := 1
	if len(rest) > 0 {
		if _, err := fmt.Sscanf(rest[0], "n%d", &number); err == nil {
			rest = rest[1:]
		}
	}
	if len(rest) == 0 {
		rest = []string{"bash"}
	}
	prefix, err := c.Enter(number)
	if err != nil {
		return err
	}
	cmd := exec.Command(prefix[0], slices.Concat(prefix[1:], rest)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return run.Exit(cmd.Run())
}

func repositoryImages(home store.Home) images.Repository {
	return images.Repository{Root: repository(), Home: home}
}

func buildImages(ctx context.Context, home store.Home, arguments []string) error {
	flags := flagSet("images")
	loadThem := flags.Bool("load", false, "also load them into the cluster")
	with := flags.String("with", "", "images on demand")
	name, wanted := parse(flags, arguments)
	repository := repositoryImages(home)
	var besides []string
	if *with != "" {
		var err error
		if besides, err = images.OnDemand(*with); err != nil {
			return err
		}
	}
	steps, built, err := repository.Steps(wanted, besides)
	if err != nil {
		return err
	}
	if *loadThem {
		c, err := cluster.Open(home, name, source())
		if err != nil {
			return err
		}
		steps = append(steps, c.LoadSteps(built)...)
	}
	return progress.New(os.Stderr).Run(ctx, steps)
}

// buildah runs buildah on the storage of images in our folder.
func buildah(_ context.Context, home store.Home, arguments []string) error {
	return images.ExecBuildah(home, arguments)
}
