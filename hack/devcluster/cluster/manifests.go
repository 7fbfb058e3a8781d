package cluster

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"vignette.dev/vignette/hack/devcluster/build"
	"vignette.dev/vignette/hack/devcluster/node"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
)

//go:embed manifests
var manifestFiles embed.FS

// applyManifests applies our manifests, and those of Multus' and Argo's modules.
func (c *Cluster) applyManifests(ctx context.Context, _ *progress.Handle) error {
	text, err := c.manifests()
	if err != nil {
		return err
	}
	return c.apply(ctx, run.Command{Args: []string{"-f", "-"}, Stdin: strings.NewReader(text)})
}

// apply applies manifests: command has the arguments of "kubectl apply".
func (c *Cluster) apply(ctx context.Context, command run.Command) error {
	command.Name, command.Env = filepath.Join(c.Bin(), "kubectl"), []string{"KUBECONFIG=" + c.Kubeconfig()}
	command.Args = append([]string{"apply", "--server-side", "--force-conflicts"}, command.Args...)
	return run.Logged(ctx, c.log("apply"), command)
}

func (c *Cluster) manifests() (string, error) {
	own, err := c.ownManifests()
	if err != nil {
		return "", err
	}
	documents := []string{own}
	for product, file := range map[*build.Product]string{new(c.Products.CNI()): "multus.yaml", new(c.Products.Argo()): "argo.yaml"} {
		folder, err := c.Products.Cache.Path(*product)
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return "", err
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "\n---\n"), nil
}

func (c *Cluster) ownManifests() (string, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(manifestFiles, "manifests/*.yaml")
	if err != nil {
		return "", err
	}
	values := map[string]string{"DNS": c.plan().DNSService().String(), "CoreDNSImage": build.CoreDNSImage}
	var out bytes.Buffer
	for _, one := range t.Templates() {
		if one.Name() == "" {
			continue
		}
		out.WriteString("---\n")
		if err := one.Execute(&out, values); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func writeConfig(to io.Writer, config node.Config) error {
	return json.NewEncoder(to).Encode(config)
}
