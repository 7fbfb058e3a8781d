package images

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"vignette.dev/vignette/hack/devcluster/run"
)

// Node is a destination of images: a prefix of arguments that runs a
// program inside the node ("nsenter …").
type Node struct {
	Name  string
	Enter []string
}

func (n Node) ctr(args ...string) run.Command {
	command := slices.Concat(n.Enter, []string{"ctr", "-n", "k8s.io"}, args)
	return run.Command{Name: command[0], Args: command[1:]}
}

// Ready reports whether the node's containerd answers.
func (n Node) Ready(ctx context.Context) bool {
	_, err := run.Output(ctx, n.ctr("version"))
	return err == nil
}

// Has reports whether the node has this very image under all its names.
func (n Node) Has(ctx context.Context, image Identity) (bool, error) {
	list, err := n.list(ctx)
	if err != nil {
		return false, err
	}
	return list.has(image), nil
}

// listing maps the names in a containerd to the digests of their manifests.
// Each image has a further name, "sha256:<image id>".
type listing map[string]string

func (n Node) list(ctx context.Context) (listing, error) {
	out, err := run.Output(ctx, n.ctr("images", "ls"))
	if err != nil {
		return nil, fmt.Errorf("images of node %s: %w", n.Name, err)
	}
	return parseListing(out), nil
}

func parseListing(text string) listing {
	l := listing{}
	for line := range strings.SplitSeq(text, "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "REF" {
			l[fields[0]] = fields[2]
		}
	}
	return l
}

func (l listing) has(image Identity) bool {
	digest, known := l["sha256:"+image.ID]
	for _, name := range image.Names {
		known = known && l[name] == digest
	}
	return known
}

// orphans returns the names by image id whose image has no other name.
func (l listing) orphans() []string {
	named := map[string]bool{}
	for name, digest := range l {
		if !strings.HasPrefix(name, "sha256:") {
			named[digest] = true
		}
	}
	var names []string
	for name, digest := range l {
		if strings.HasPrefix(name, "sha256:") && !named[digest] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Load imports the archive with image, unless the node has it already.
func (n Node) Load(ctx context.Context, archive string, image Identity, log string) (loaded bool, err error) {
	if has, err := n.Has(ctx, image); err != nil || has {
		return false, err
	}
	f, err := os.Open(archive)
	if err != nil {
		return false, err
	}
	defer f.Close()
	command := n.ctr("images", "import", "-")
	command.Stdin = f
	if err := run.Logged(ctx, log, command); err != nil {
		return false, fmt.Errorf("load %s into node %s: %w", strings.Join(image.Names, ", "), n.Name, err)
	}
	// The CRI plugin adds the name by id for a new name, but not for a name
	// that moves to another image.
	if _, err := run.Output(ctx, n.ctr("images", "tag", "--force", image.Names[0], "sha256:"+image.ID)); err != nil {
		return false, err
	}
	return true, n.removeOrphans(ctx)
}

// removeOrphans frees the space of images whose name belongs to a newer one.
// Containers that run from them keep what they need.
func (n Node) removeOrphans(ctx context.Context) error {
	list, err := n.list(ctx)
	if err != nil {
		return err
	}
	orphans := list.orphans()
	if len(orphans) == 0 {
		return nil
	}
	_, err = run.Output(ctx, n.ctr(append([]string{"images", "rm"}, orphans...)...))
	return err
}
