package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/origin"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func newStatus(t *target) *cobra.Command {
	var all, follow bool
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the progress of experiments",
		Long: "status lists the experiments of a namespace, or shows one in detail: its phase, its nodes, its\n" +
			"conditions, the messages so far, the results in brief.\n" +
			"With --watch it shows live figures, in place on a terminal and as lines elsewhere: the share delivered, delays,\n" +
			"messages a second, queues, whether the emulation keeps up, events; of one experiment until it ends, with exit code 1 if\n" +
			"it failed or is not accepted, or of all that are under way. Ctrl-C ends only the watching.",
		Example: "  vignette status\n" +
			"  vignette status -n team-nor quickstart\n" +
			"  vignette status quickstart --watch\n" +
			"  vignette status --all-namespaces",
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) == 1 {
				return fmt.Errorf("--all-namespaces lists experiments, and %s is one: leave out one of the two; -n NAMESPACE says where it is", args[0])
			}
			return atMostOne("the NAME of an experiment")(cmd, args)
		},
		ValidArgsFunction: t.completeExperiment,
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			if len(args) == 1 && follow {
				e, err := c.experiment(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.watchStatus(cmd.Context(), c.watchedExperiment(e), refreshInterval, cmd.OutOrStdout())
			}
			if len(args) == 1 {
				return c.describe(cmd.Context(), args[0], cmd.OutOrStdout())
			}
			if all {
				c.namespace = ""
			}
			if follow {
				return c.watchStatus(cmd.Context(), &watchedNamespace{c: c}, manyInterval, cmd.OutOrStdout())
			}
			return c.list(cmd.Context(), cmd.OutOrStdout())
		}),
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the experiments of all namespaces")
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "show live figures")
	return cmd
}

func (c *cluster) list(ctx context.Context, out io.Writer) error {
	var experiments v1alpha1.ExperimentList
	if err := c.kube.List(ctx, &experiments, client.InNamespace(c.namespace)); err != nil {
		return explain(err)
	}
	if len(experiments.Items) == 0 {
		if c.namespace != "" && apierrors.IsNotFound(c.kube.Get(ctx, client.ObjectKey{Name: c.namespace}, &corev1.Namespace{})) {
			return missingNamespace(c.namespace)
		}
		_, err := fmt.Fprintf(out, "No experiments in %s. Start one: vignette run FILE\n", c.scopeText())
		return err
	}
	_, err := io.WriteString(out, listTable(experiments.Items, c.namespace == "", time.Now()))
	return err
}

func listTable(experiments []v1alpha1.Experiment, namespaces bool, now time.Time) string {
	rows := table{inNamespace("NAMESPACE", namespaces, left("NAME", "PHASE", "NODES", "PROGRESS", "DELIVERED", "MEDIAN DELAY", "AGE"))}
	for _, e := range experiments {
		delivered, median := "", ""
		if r := e.Status.Results; r != nil {
			delivered, median = "-", delayText(r.MedianDelay)
			if r.DeliveredPercent != "" {
				delivered = r.DeliveredPercent + " %"
			}
		}
		rows = append(rows, inNamespace(e.Namespace, namespaces, left(e.Name, stage(&e), e.Status.Nodes.Summary, cmp.Or(e.Status.Progress, reasonToWait(&e)), delivered, median, ageText(e.CreationTimestamp.Time, now))))
	}
	return rows.String()
}

// reasonToWait is why an experiment is queued, or cannot be.
func reasonToWait(e *v1alpha1.Experiment) string {
	if e.Status.Phase != v1alpha1.PhaseQueued {
		return ""
	}
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionAdmitted} {
		if meta.IsStatusConditionFalse(e.Status.Conditions, kind) {
			return meta.FindStatusCondition(e.Status.Conditions, kind).Reason
		}
	}
	return ""
}

// experiment reads an experiment; if it does not exist, the error says what to do.
func (c *cluster) experiment(ctx context.Context, name string) (*v1alpha1.Experiment, error) {
	e := &v1alpha1.Experiment{}
	err := c.kube.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, e)
	if apierrors.IsNotFound(err) {
		return nil, c.missingExperiment(ctx, name)
	}
	return e, explain(err)
}

func (c *cluster) describe(ctx context.Context, name string, out io.Writer) error {
	e, err := c.experiment(ctx, name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, description(e, c.counters(ctx, e), time.Now()))
	return err
}

// missingExperiment explains that there is no such experiment, with the archived runs of the name.
func (c *cluster) missingExperiment(ctx context.Context, name string) error {
	err := fmt.Errorf("there is no experiment %s in namespace %s", name, c.namespace)
	if runs, archiveErr := c.archive.Runs(ctx, c.namespace, name); archiveErr == nil && len(runs) > 0 {
		return fmt.Errorf("%w any more, but the archive has %d of its runs: vignette results -n %s %s", err, len(runs), c.namespace, name)
	}
	if c.kube.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, &v1alpha1.Campaign{}) == nil {
		return fmt.Errorf("%w, but a campaign: vignette campaign status -n %s %s", err, c.namespace, name)
	}
	return fmt.Errorf("%w: vignette status lists the existing ones, -A those of all namespaces", err)
}

// description describes one experiment in detail.
func description(e *v1alpha1.Experiment, counters *runapi.Counters, now time.Time) string {
	rows := table{left("Experiment", e.Namespace+"/"+e.Name), left("UID", string(e.UID)), left("Phase", stage(e))}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, left(name, oneLine(value)))
		}
	}
	add("Message", e.Status.Message)
	add("Nodes ready", e.Status.Nodes.Summary)
	if !hasNoDuration(e) {
		add("Progress", e.Status.Progress)
	}
	if e.Status.T0 != nil {
		add("T0", e.Status.T0.UTC().Format("2006-01-02 15:04:05.000Z"))
		if isTimelineUnderWay(e) {
			add("Elapsed", clock(elapsed(e, now))+durationSuffix(e, " of ", ", up until vignette stop"))
		}
	}
	add("Workflow", e.Status.Workflow)
	rerunOf, basedOn := origin.Of(e)
	if rerunOf != nil {
		add("Rerun of", rerunOf.UID)
	}
	if basedOn != nil {
		add("Based on", basedOn.UID+", "+changesText(*basedOn))
	}
	add("Campaign", campaignOf(e))
	if counters != nil {
		add("Messages", fmt.Sprintf("%d sent, %d received", counters.Sent, counters.Received))
	}
	if e.Status.Results != nil {
		add("Results", headline(e.Status.Results)[len(": "):])
	}
	return rows.String() + conditionsText(e.Status.Conditions, e.Status.Message)
}

// changesText has the changes of a spec in one line.
func changesText(run runapi.Rerun) string {
	if len(run.Changes) == 0 {
		return "whose spec is not known"
	}
	var words []string
	for _, c := range run.Changes[:min(len(run.Changes), 5)] {
		words = append(words, fmt.Sprintf("%s %s instead of %s", c.Path, cmp.Or(c.To, "none"), cmp.Or(c.From, "none")))
	}
	if more := len(run.Changes) + run.MoreChanges - len(words); more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return "with " + strings.Join(words, ", ")
}

// campaignOf an experiment that belongs to one, with its point and round.
func campaignOf(e *v1alpha1.Experiment) string {
	name := e.Labels[v1alpha1.LabelCampaign]
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s, point %s of round %s: vignette campaign status -n %s %[1]s", name, e.Labels[v1alpha1.LabelCampaignPoint], e.Labels[v1alpha1.LabelCampaignRound], e.Namespace)
}

// conditionsText is a table of conditions after an empty line; empty for none. Messages that were shown already are left out.
func conditionsText(conditions []metav1.Condition, said ...string) string {
	if len(conditions) == 0 {
		return ""
	}
	rows := table{left("CONDITION", "STATUS", "REASON", "MESSAGE")}
	for _, c := range conditions {
		message := c.Message
		if slices.Contains(said, message) {
			message = ""
		}
		said = append(said, message)
		rows = append(rows, left(c.Type, string(c.Status), c.Reason, oneLine(message)))
	}
	return "\n" + rows.String()
}
