package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// settings are what `set` changes, by key.
var settings = map[string]func(*v1alpha1.RadioChange, string) error{
	"rate":               text(func(l *v1alpha1.LinkPatch) **v1alpha1.DataRate { return &l.Rate }),
	"delay":              text(func(l *v1alpha1.LinkPatch) **v1alpha1.Duration { return &l.Delay }),
	"jitter":             text(func(l *v1alpha1.LinkPatch) **v1alpha1.Duration { return &l.Jitter }),
	"jitterDistribution": text(func(l *v1alpha1.LinkPatch) **v1alpha1.JitterDistribution { return &l.JitterDistribution }),
	"loss":               text(func(l *v1alpha1.LinkPatch) **v1alpha1.Percent { return &l.Loss }),
	"duplicate":          text(func(l *v1alpha1.LinkPatch) **v1alpha1.Percent { return &l.Duplicate }),
	"reorder": func(c *v1alpha1.RadioChange, value string) (err error) {
		link(c).Reorder, err = boolean(value)
		return err
	},
	"limit": func(c *v1alpha1.RadioChange, value string) error {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return fmt.Errorf("want a number of frames, such as 1000")
		}
		link(c).Limit = new(int32)
		*link(c).Limit = int32(n)
		return nil
	},
	"limitBytes": func(c *v1alpha1.RadioChange, value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("want a number of bytes, such as 65536")
		}
		link(c).LimitBytes = &n
		return nil
	},
	"gilbertElliott": func(c *v1alpha1.RadioChange, value string) error {
		parts := strings.Split(value, ",")
		if len(parts) < 2 || len(parts) > 4 {
			return fmt.Errorf("want goodToBad,badToGood[,lossInBad[,lossInGood]], such as 1%%,25%%")
		}
		model := &v1alpha1.GilbertElliott{}
		for i, field := range []*v1alpha1.Percent{&model.GoodToBad, &model.BadToGood, &model.LossInBad, &model.LossInGood}[:len(parts)] {
			*field = v1alpha1.Percent(parts[i])
		}
		link(c).GilbertElliott = model
		return nil
	},
	"silent": func(c *v1alpha1.RadioChange, value string) (err error) {
		c.Silent, err = boolean(value)
		return err
	},
}

// settingNames in the order of the link model's documentation.
var settingNames = []string{"rate", "delay", "jitter", "jitterDistribution", "reorder", "loss", "gilbertElliott", "duplicate", "limit", "limitBytes", "silent"}

// text makes a setting of a value that the API server judges.
func text[T ~string](field func(*v1alpha1.LinkPatch) **T) func(*v1alpha1.RadioChange, string) error {
	return func(c *v1alpha1.RadioChange, value string) error {
		if value == "" {
			return fmt.Errorf("want a value")
		}
		converted := T(value)
		*field(link(c)) = &converted
		return nil
	}
}

func link(c *v1alpha1.RadioChange) *v1alpha1.LinkPatch {
	if c.Link == nil {
		c.Link = &v1alpha1.LinkPatch{}
	}
	return c.Link
}

func boolean(value string) (*bool, error) {
	b, err := strconv.ParseBool(value)
	if err != nil {
		return nil, fmt.Errorf("want true or false")
	}
	return &b, nil
}

func newSet(t *target) *cobra.Command {
	var experiment, from, to string
	cmd := &cobra.Command{
		Use:   "set NETWORK [KEY=VALUE...]",
		Short: "Change how a network of a running experiment carries frames",
		Long: "set changes the link of a network while the experiment runs: what is given replaces what holds, frames under way\n" +
			"keep their times. It waits until the change holds and says from when on. The change is part of the run record.\n" +
			"--from and --to limit it to the frames of one group (or node) to another.\n" +
			"Without KEY=VALUE it shows what the network began with, and all changes, those of the timeline that are to come too.\n\n" +
			"Keys: rate, delay, jitter, jitterDistribution (uniform, normal), reorder (true, false), loss, duplicate,\n" +
			"limit (frames), limitBytes, gilbertElliott (goodToBad,badToGood[,lossInBad[,lossInGood]]), silent (true, false).",
		Example: "  vignette set wan delay=200ms loss=5%\n" +
			"  vignette set wan --from hq --to veh rate=9.6kbit\n" +
			"  vignette set wan gilbertElliott=1%,25%\n" +
			"  vignette set wan silent=true\n" +
			"  vignette set -e bft-live wan",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs a NETWORK: see %[1]s --help", cmd.CommandPath())
			}
			_, err := parseChange(args[0], from, to, args[1:])
			return err
		},
		ValidArgsFunction: t.completeSetting(&experiment),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := parseChange(args[0], from, to, args[1:])
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return t.explainArchive(c.showNetwork(cmd.Context(), experiment, args[0], cmd.OutOrStdout()))
			}
			return c.set(cmd.Context(), experiment, change, args[1:], cmd.OutOrStdout())
		},
	}
	t.experimentFlag(cmd, &experiment)
	cmd.Flags().StringVar(&from, "from", "", "`group` or node whose frames the change is for (default: all)")
	cmd.Flags().StringVar(&to, "to", "", "`group` or node that the frames go to (default: all)")
	for _, flag := range []string{"from", "to"} {
		complete(cmd, flag, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return t.offer(cmd, experiment, typed, (*site).groupNames)
		})
	}
	return cmd
}

// completeSetting offers networks, then keys.
func (t *target) completeSetting(experiment *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return t.offer(cmd, *experiment, typed, (*site).networkNames)
		}
		keys := make([]string, len(settingNames))
		for i, name := range settingNames {
			keys[i] = name + "="
		}
		return beginning(typed, keys), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// parseChange reads KEY=VALUE arguments.
func parseChange(network, from, to string, arguments []string) (v1alpha1.RadioChange, error) {
	change := v1alpha1.RadioChange{Network: network, From: from, To: to}
	var seen []string
	for _, argument := range arguments {
		key, value, found := strings.Cut(argument, "=")
		setting := settings[key]
		switch {
		case !found:
			return change, fmt.Errorf("%q: want KEY=VALUE, such as delay=200ms; keys are %s", argument, strings.Join(settingNames, ", "))
		case setting == nil:
			return change, fmt.Errorf("%q: there is no key %s: want one of %s", argument, key, strings.Join(settingNames, ", "))
		case slices.Contains(seen, key):
			return change, fmt.Errorf("%q: %s is given twice: give it once", argument, key)
		}
		if err := setting(&change, value); err != nil {
			return change, fmt.Errorf("%q: %w", argument, err)
		}
		seen = append(seen, key)
	}
	if change.Silent != nil && (from != "" || to != "") {
		return change, fmt.Errorf("silent is for the whole network: leave out --from and --to")
	}
	if slices.Contains(seen, "loss") && slices.Contains(seen, "gilbertElliott") {
		return change, fmt.Errorf("loss and gilbertElliott are two models of the same thing: give one of them")
	}
	return change, nil
}

func (c *cluster) set(ctx context.Context, experiment string, change v1alpha1.RadioChange, arguments []string, out io.Writer) error {
	s, err := c.up(ctx, experiment, "vignette set "+change.Network+" "+strings.Join(arguments, " "))
	if err != nil {
		return err
	}
	if err := s.checkChange(change); err != nil {
		return err
	}
	live := &v1alpha1.LiveChange{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: s.Name + "-"}}
	live.Spec = v1alpha1.LiveChangeSpec{Experiment: s.Name, Changes: []v1alpha1.RadioChange{change}}
	if err := c.kube.Create(ctx, live, client.FieldOwner(fieldManager)); err != nil {
		return explainChange(err, arguments)
	}
	err = c.await(ctx, live, "the change", func() ([]metav1.Condition, string) {
		return live.Status.Conditions, v1alpha1.ConditionApplied
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s%s\n", change.Network, strings.Join(describeChange(change), " "), holdsFrom(live.Status.AppliesAt, s.Status.T0))
	return err
}

// explainChange puts what the API server refuses into the words that were typed.
func explainChange(err error, arguments []string) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return explain(err)
	}
	var refusals []error
	for _, cause := range status.Status().Details.Causes {
		// Such as spec.changes[0].link.loss: Invalid value: "string": must be a percentage
		what, parts := cause.Field, strings.Split(cause.Field, ".")
		for _, argument := range arguments {
			if key, _, _ := strings.Cut(argument, "="); slices.Contains(parts, key) {
				what = argument
			}
		}
		refusals = append(refusals, fmt.Errorf("%s: %s", what, strings.TrimPrefix(cause.Message, `Invalid value: "string": `)))
	}
	if len(refusals) == 0 {
		return explain(err)
	}
	return errors.Join(refusals...)
}

// holdsFrom says from when a change holds, by the clock and by the experiment's.
func holdsFrom(at, t0 *metav1.MicroTime) string {
	if at == nil {
		return " holds"
	}
	text := " holds from " + at.UTC().Format("15:04:05.000Z")
	if t0 != nil {
		text += fmt.Sprintf(", T0 + %.3f s", at.Sub(t0.Time).Seconds())
	}
	return text
}

// checkChange says what the experiment has none of.
func (s *site) checkChange(change v1alpha1.RadioChange) error {
	if _, err := s.network(change.Network); err != nil {
		return err
	}
	for flag, name := range map[string]string{"--from": change.From, "--to": change.To} {
		if known := s.groupNames(); name != "" && name != "*" && !slices.Contains(known, name) {
			return fmt.Errorf("%s %s: there is no such group or node in experiment %s: want one of %s", flag, name, s.Name, some(known))
		}
	}
	return nil
}

// describeChange is a change as it is typed.
func describeChange(change v1alpha1.RadioChange) (parts []string) {
	if change.From != "" {
		parts = append(parts, "--from "+change.From)
	}
	if change.To != "" {
		parts = append(parts, "--to "+change.To)
	}
	if l := change.Link; l != nil {
		parts = append(parts, describePatch(*l)...)
	}
	if change.Silent != nil {
		parts = append(parts, fmt.Sprintf("silent=%v", *change.Silent))
	}
	return parts
}

func describePatch(l v1alpha1.LinkPatch) (parts []string) {
	parts = given(parts, "rate", l.Rate)
	parts = given(parts, "delay", l.Delay)
	parts = given(parts, "jitter", l.Jitter)
	parts = given(parts, "jitterDistribution", l.JitterDistribution)
	parts = given(parts, "reorder", l.Reorder)
	parts = given(parts, "loss", l.Loss)
	if g := l.GilbertElliott; g != nil {
		values := []string{string(g.GoodToBad), string(g.BadToGood), string(g.LossInBad), string(g.LossInGood)}
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		parts = append(parts, "gilbertElliott="+strings.Join(values, ","))
	}
	parts = given(parts, "duplicate", l.Duplicate)
	parts = given(parts, "limit", l.Limit)
	return given(parts, "limitBytes", l.LimitBytes)
}

func given[T any](parts []string, key string, value *T) []string {
	if value == nil {
		return parts
	}
	return append(parts, fmt.Sprintf("%s=%v", key, *value))
}

// asPatch shows a whole model with the words of a change; what has no effect is left out.
func asPatch(l v1alpha1.LinkModel) v1alpha1.LinkPatch {
	patch := v1alpha1.LinkPatch{Rate: l.Rate, GilbertElliott: l.GilbertElliott, LimitBytes: l.LimitBytes}
	if l.Delay.Std() != 0 {
		patch.Delay = &l.Delay
	}
	if l.Jitter.Std() != 0 {
		patch.Jitter, patch.JitterDistribution = &l.Jitter, &l.JitterDistribution
	}
	if l.Reorder {
		patch.Reorder = &l.Reorder
	}
	if l.Loss.Fraction() != 0 {
		patch.Loss = &l.Loss
	}
	if l.Duplicate.Fraction() != 0 {
		patch.Duplicate = &l.Duplicate
	}
	if l.Limit != 0 {
		patch.Limit = &l.Limit
	}
	return patch
}

// showNetwork tells what a network began with and what has been changed since.
func (c *cluster) showNetwork(ctx context.Context, experiment, name string, out io.Writer) error {
	s, err := c.up(ctx, experiment, "vignette set "+name)
	if err != nil {
		return err
	}
	network, err := s.network(name)
	if err != nil {
		return err
	}
	state, err := c.archive.State(ctx, string(s.UID))
	if err != nil {
		return err
	}
	rows := table{left("FROM", "WHAT", "HOLDS")}
	begin := func(what string, model *v1alpha1.LinkModel) {
		if model != nil {
			rows = append(rows, left("T0", what, strings.Join(describePatch(asPatch(*model)), " ")))
		}
	}
	begin("link", network.Link)
	if network.Waveform != "" {
		waveform := state.Plan.Waveforms[network.Waveform]
		begin("waveform "+network.Waveform, waveform.Link)
		begin("its downlink, from "+strings.Join(network.Base, ", "), waveform.Downlink)
	}
	for _, l := range network.Links {
		begin("link --from "+l.From+" --to "+l.To, &l.LinkModel)
	}
	for _, change := range changesOf(s.Spec.Timeline, state.Plan.LiveChanges, name) {
		rows = append(rows, left("T0 + "+change.at.String(), change.what, strings.Join(describeChange(change.RadioChange), " ")))
	}
	_, err = io.WriteString(out, rows.String())
	return err
}

// momentary is a change at a moment after T0.
type momentary struct {
	v1alpha1.RadioChange
	at   time.Duration
	what string
}

// changesOf a network, in order of time: of two at one moment the one made by hand is the later.
func changesOf(timeline []v1alpha1.TimelineEntry, byHand []runapi.PlannedLiveChange, network string) (changes []momentary) {
	add := func(at time.Duration, what string, all []v1alpha1.RadioChange) {
		for _, change := range all {
			if change.Network == network {
				changes = append(changes, momentary{change, at, what})
			}
		}
	}
	for _, entry := range timeline {
		add(entry.At.Std(), "timeline", entry.Set)
	}
	for _, change := range byHand {
		add(time.Duration(change.AtNanoseconds).Round(time.Millisecond), "by hand, "+change.Name, change.Changes)
	}
	slices.SortStableFunc(changes, func(a, b momentary) int { return cmp.Compare(a.at, b.at) })
	return changes
}
