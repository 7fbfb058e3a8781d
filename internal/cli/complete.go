package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// completionTimeout for a cluster that does not answer.
const completionTimeout = 2 * time.Second

// complete sets the completion of a flag's value.
func complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // no such flag: a mistake in this package
	}
}

// noCompletion completes nothing for the values of flags.
func noCompletion(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
}

// completeYAML offers YAML files.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeExperiment offers the experiments of the namespace; none if the cluster does not answer.
func (t *target) completeExperiment(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return t.completeNames(cmd, typed, v1alpha1.GroupVersion.WithKind("ExperimentList"), true)
}

func (t *target) completeNamespace(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return t.completeNames(cmd, typed, schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"}, false)
}

func (t *target) completeNames(cmd *cobra.Command, typed string, kind schema.GroupVersionKind, namespaced bool) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := completionContext(cmd)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.names(ctx, typed, kind, namespaced), cobra.ShellCompDirectiveNoFileComp
}

func completionContext(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	return context.WithTimeout(parent, completionTimeout)
}

// names of the objects of a kind that begin with the typed text.
func (c *cluster) names(ctx context.Context, typed string, kind schema.GroupVersionKind, namespaced bool) (names []string) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	var options []client.ListOption
	if namespaced {
		options = append(options, client.InNamespace(c.namespace))
	}
	if c.kube.List(ctx, list, options...) != nil {
		return nil // completion cannot show errors
	}
	for _, item := range list.Items {
		if strings.HasPrefix(item.Name, typed) {
			names = append(names, item.Name)
		}
	}
	return names
}

// atMostOne makes an argument optional; what describes it in errors.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes at most one argument, %s; %q is too much", cmd.CommandPath(), what, args[1])
		}
		return nil
	}
}

// noArguments refuses any.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument; %q is too much", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneArgument demands one argument; what describes it in errors.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs %s: see %[1]s --help", cmd.CommandPath(), what)
		case args[0] == "": // to the archive it means every name
			return fmt.Errorf("%s needs %s, and the given one is empty", cmd.CommandPath(), what)
		case len(args) == 1:
			return nil
		}
		return fmt.Errorf("%s takes one argument, %s; %q is too much", cmd.CommandPath(), what, args[1])
	}
}
