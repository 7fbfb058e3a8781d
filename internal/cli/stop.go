package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newStop(t *target) *cobra.Command {
	return &cobra.Command{
		Use:   "stop NAME",
		Short: "End an experiment early, and analyse what was measured",
		Long: "stop ends an experiment early, or a live cluster, which has no end: publishers stop, messages\n" +
			"under way may arrive, everything is collected and analysed as usual. An experiment that has not begun has no\n" +
			"results.",
		Example: "  vignette stop quickstart\n" +
			"  vignette stop -n team-nor quickstart",
		Args:              oneArgument("the NAME of an experiment"),
		ValidArgsFunction: t.completeExperiment,
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			return c.stop(cmd.Context(), args[0], cmd.OutOrStdout())
		}),
	}
}

func (c *cluster) stop(ctx context.Context, name string, out io.Writer) error {
	e, err := c.experiment(ctx, name)
	if err != nil {
		return err
	}
	if outcomeOf(e) != nil {
		_, err := fmt.Fprintf(out, "experiment %s/%s has ended already: %s\n", e.Namespace, e.Name, e.Status.Phase)
		return err
	}
	before := e.DeepCopy()
	e.Spec.Stop = true
	if err := c.kube.Patch(ctx, e, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
		return explain(err)
	}
	if e.Status.T0 == nil {
		_, err = fmt.Fprintf(out, "experiment %s/%s is stopping before its start: nothing was measured, so that it will have no results\n", e.Namespace, e.Name)
		return err
	}
	_, err = fmt.Fprintf(out, "experiment %[1]s/%[2]s is stopping; results in a moment: vignette results -n %[1]s %[2]s\n", e.Namespace, e.Name)
	return err
}
