package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func newCampaign(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "campaign",
		Aliases: []string{"campaigns"},
		Short:   "Look at campaigns: one experiment for every point of a matrix",
		Long: "campaign shows the progress of campaigns and what they have measured. A campaign runs one experiment for every\n" +
			"point of a matrix (docs/how-to/run-campaigns.md); vignette run FILE starts it.",
		Example: "  vignette campaign list\n" +
			"  vignette campaign status e4-s1\n" +
			"  vignette campaign results e4-s1",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCampaignList(t), newCampaignStatus(t), newCampaignResults(t), newCampaignReport(t),
		newCampaignSuspend(t, true), newCampaignSuspend(t, false))
	return cmd
}

// completeCampaign offers the campaigns of the namespace; none if the cluster does not answer.
func (t *target) completeCampaign(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return t.completeNames(cmd, typed, v1alpha1.GroupVersion.WithKind("CampaignList"), true)
}

const nameOfCampaign = "the NAME of a campaign"

func newCampaignList(t *target) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the campaigns of a namespace", Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "list shows the campaigns of a namespace: their phase, how many of their runs are done, when the round under way will end\n" +
			"and the next one begins.",
		Example: "  vignette campaign list\n  vignette campaign list --all-namespaces",
		RunE: t.run(func(c *cluster, cmd *cobra.Command, _ []string) error {
			if all {
				c.namespace = ""
			}
			return c.listCampaigns(cmd.Context(), cmd.OutOrStdout(), time.Now())
		}),
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the campaigns of all namespaces")
	return cmd
}

func (c *cluster) listCampaigns(ctx context.Context, out io.Writer, now time.Time) error {
	var campaigns v1alpha1.CampaignList
	if err := c.kube.List(ctx, &campaigns, client.InNamespace(c.namespace)); err != nil {
		return explain(err)
	}
	if len(campaigns.Items) == 0 {
		_, err := fmt.Fprintf(out, "No campaigns in %s. Start one: vignette run FILE\n", c.scopeText())
		return err
	}
	_, err := io.WriteString(out, campaignTable(campaigns.Items, c.namespace == "", now))
	return err
}

// scopeText names what the commands cover.
func (c *cluster) scopeText() string {
	if c.namespace == "" {
		return "the cluster"
	}
	return "namespace " + c.namespace
}

func campaignTable(campaigns []v1alpha1.Campaign, namespaces bool, now time.Time) string {
	rows := table{inNamespace("NAMESPACE", namespaces, left("NAME", "PHASE", "RUNS", "FAILED", "ROUND", "TIME LEFT", "NEXT ROUND", "AGE"))}
	for i := range campaigns {
		camp := &campaigns[i]
		s := &camp.Status
		next := ""
		if s.NextScheduleTime != nil {
			next = untilText(s.NextScheduleTime.Time, now)
		}
		rows = append(rows, inNamespace(camp.Namespace, namespaces, left(camp.Name, campaignPhase(camp), s.Counts.Summary, count(int64(s.Counts.Failed)), count(s.Round), timeLeft(camp, now), next,
			ageText(camp.CreationTimestamp.Time, now))))
	}
	return rows.String()
}

// untilText says how long it is until a moment. One that has passed waits for the operator, or until the campaign is accepted.
func untilText(moment, now time.Time) string {
	left := moment.Sub(now)
	if left < 0 {
		return "overdue"
	}
	return "in " + duration.HumanDuration(left)
}

// ageText says how long ago something was. The cluster's clock may be ahead of this machine's.
func ageText(since, now time.Time) string { return duration.HumanDuration(max(0, now.Sub(since))) }

func campaignPhase(camp *v1alpha1.Campaign) string {
	if camp.Status.Phase == "" {
		return "Submitted"
	}
	return string(camp.Status.Phase)
}

// isUnderWay reports whether a round is under way.
func isUnderWay(camp *v1alpha1.Campaign) bool {
	return slices.Contains([]v1alpha1.CampaignPhase{v1alpha1.CampaignRunning, v1alpha1.CampaignReporting}, camp.Status.Phase)
}

// timeLeft of the round, if the operator has an estimate.
func timeLeft(camp *v1alpha1.Campaign, now time.Time) string {
	end := camp.Status.EstimatedCompletionTime
	if end == nil || !isUnderWay(camp) {
		return ""
	}
	return clock(max(0, end.Sub(now)))
}

// campaign reads a campaign. It is nil only if none has the name; the error says what to do then.
func (c *cluster) campaign(ctx context.Context, name string) (*v1alpha1.Campaign, error) {
	camp := &v1alpha1.Campaign{}
	err := c.kube.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, camp)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no campaign %s in namespace %s: vignette campaign list shows the existing ones, -A those of all namespaces; "+
			"results of a deleted one: vignette campaign results -n %[2]s %[1]s", name, c.namespace)
	}
	return camp, explain(err)
}

func newCampaignSuspend(t *target, suspend bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "resume NAME", Short: "Resume a suspended campaign", Args: oneArgument(nameOfCampaign), ValidArgsFunction: t.completeCampaign,
		Long: "resume lets a suspended campaign start further runs, and its schedule further rounds.\n" +
			"If a GitOps tool applies the campaign's file, remove suspend: true from the file instead.",
		Example: "  vignette campaign resume e4-s1",
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			return c.suspend(cmd.Context(), args[0], suspend, cmd.OutOrStdout())
		}),
	}
	if suspend {
		cmd.Use, cmd.Short = "suspend NAME", "Start no further runs of a campaign"
		cmd.Long = "suspend lets the runs that are under way go on to their end, and starts no further ones until vignette campaign resume.\n" +
			"Where the file of the campaign is applied again and again (GitOps), write suspend: true into the file instead."
		cmd.Example = "  vignette campaign suspend e4-s1"
	}
	return cmd
}

func (c *cluster) suspend(ctx context.Context, name string, suspend bool, out io.Writer) error {
	camp, err := c.campaign(ctx, name)
	if err != nil {
		return err
	}
	which := fmt.Sprintf("campaign %s/%s", camp.Namespace, camp.Name)
	if camp.Spec.Suspend == suspend {
		state := "is not suspended"
		if suspend {
			state = "is suspended already"
		}
		_, err := fmt.Fprintln(out, which, state)
		return err
	}
	before := camp.DeepCopy()
	camp.Spec.Suspend = suspend
	if err := c.kube.Patch(ctx, camp, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
		return explain(err)
	}
	if !suspend {
		_, err = fmt.Fprintln(out, which, "goes on")
		return err
	}
	text := " is suspended: no further runs start"
	if n := camp.Status.Counts.Running; n > 0 {
		text += fmt.Sprintf("; %d under way go on to their end", n)
	}
	_, err = fmt.Fprintf(out, "%s%s. Let it go on: vignette campaign resume -n %s %s\n", which, text, camp.Namespace, camp.Name)
	return err
}
