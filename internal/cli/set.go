package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func newSet(t *target) *cobra.Command {
	var experiment, from, to string
	cmd := &cobra.Command{
		Use:   "set NETWORK [KEY=VALUE...]",
		Short: "Change how a network of a running experiment carries frames",
		Long: "set changes a network while the experiment runs: what is given replaces what holds, frames under way keep their\n" +
			"times. It waits until the change holds and says from when on. The change is part of the run record.\n" +
			"Without KEY=VALUE it shows what the network began with, and all changes, those of the timeline that are to come too.\n\n" +
			"Keys of the model link, which --from and --to limit to the frames of one group (or node) to another:\n" +
			"rate, delay, jitter, jitterDistribution (uniform, normal, pareto, paretonormal), jitterCorrelation,\n" +
			"reorder (true, false), loss, lossCorrelation, gilbertElliott (goodToBad,badToGood[,lossInBad[,lossInGood]]),\n" +
			"duplicate, corrupt, limit (frames), limitBytes.\n\n" +
			"Keys of the models rfpipe and tdma, which --from limits to the radios of one group (or node):\n" +
			"rate, transmitPower, antennaGain, noiseFigure, transmit (true, false: radio silence), frequency (rfpipe).\n" +
			"Always for the whole network: delay and jitter (rfpipe), schedule (tdma: @FILE, an EMANE TDMA schedule file), and\n" +
			"jammer (NAME,power=P, then latitude=D,longitude=D[,altitude=H], or pathloss=L to every node; then\n" +
			"[,frequency=F][,bandwidth=B]; or NAME,off; a jammer of the same name is replaced).\n\n" +
			"Key of all models, for the whole network: silent (true, false).",
		Example: "  vignette set wan delay=200ms loss=5%\n" +
			"  vignette set wan --from hq --to veh rate=9.6kbit\n" +
			"  vignette set wan gilbertElliott=1%,25%\n" +
			"  vignette set wan silent=true\n" +
			"  vignette set vhf --from hq transmit=false\n" +
			"  vignette set vhf transmitPower=5W rate=64kbit\n" +
			"  vignette set vhf jammer=noise,power=100W,latitude=58.19,longitude=7.98\n" +
			"  vignette set vhf jammer=noise,off\n" +
			"  vignette set vhf schedule=@slots.xml\n" +
			"  vignette set -e bft-live wan",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs a NETWORK: see %[1]s --help", cmd.CommandPath())
			}
			_, err := parseWish(args[0], from, to, args[1:])
			return err
		},
		ValidArgsFunction: t.completeSetting(&experiment),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := parseWish(args[0], from, to, args[1:])
			if err != nil {
				return err
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return t.explainArchive(c.showNetwork(cmd.Context(), experiment, args[0], cmd.OutOrStdout()))
			}
			return t.explainArchive(c.set(cmd.Context(), experiment, w, cmd.OutOrStdout()))
		},
	}
	t.experimentFlag(cmd, &experiment)
	cmd.Flags().StringVar(&from, "from", "", "`group` or node whose frames or radios the change is for (default: all)")
	cmd.Flags().StringVar(&to, "to", "", "`group` or node that the frames go to, for the model link (default: all)")
	for _, flag := range []string{"from", "to"} {
		complete(cmd, flag, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return t.completeFrom(cmd, experiment, typed, (*expandedExperiment).groupNames)
		})
	}
	return cmd
}

// completeSetting offers networks, then keys.
func (t *target) completeSetting(experiment *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return t.completeFrom(cmd, *experiment, typed, (*expandedExperiment).networkNames)
		}
		names := keyNames(models...)
		ctx, cancel := completionContext(cmd)
		defer cancel()
		if c, err := t.connect(ctx); err == nil {
			names = c.keyNames(ctx, *experiment, args[0])
		}
		for i, name := range names {
			names[i] = name + "="
		}
		return withPrefix(typed, names), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// keyNames that a network has; all that there are where its model cannot be told.
func (c *cluster) keyNames(ctx context.Context, experiment, name string) []string {
	all := keyNames(models...)
	e, err := c.chooseExperiment(ctx, experiment, "")
	if err != nil {
		return all
	}
	network, err := (&expandedExperiment{Experiment: e}).network(name)
	if err != nil {
		return all
	}
	w, err := c.waveformOf(ctx, e, network)
	if err != nil {
		return all
	}
	return keyNames(w.Model())
}

// waveformOf a network: the one it has in place, or that of its name as the run began with it.
func (c *cluster) waveformOf(ctx context.Context, e *v1alpha1.Experiment, network v1alpha1.Network) (*v1alpha1.WaveformSpec, error) {
	if w, inPlace := render.InPlace(network); inPlace {
		return &w, nil
	}
	state, err := c.archive.State(ctx, string(e.UID))
	if err != nil {
		return nil, err
	}
	w, known := state.Plan.Waveforms[network.Waveform]
	if !known {
		return nil, fmt.Errorf("the record of the run lacks waveform %s of network %s, so that its keys are not known: vignette status -n %s %s tells how far the run is",
			network.Waveform, network.Name, e.Namespace, e.Name)
	}
	return &w, nil
}

// assignment of a value to a key, as it was typed.
type assignment struct{ key, value string }

func (a assignment) String() string { return a.key + "=" + a.value }

// wish is a change of a network. The network's model decides what its keys mean.
type wish struct {
	network, from, to string
	assignments       []assignment
}

func (w *wish) arguments() (arguments []string) {
	for _, a := range w.assignments {
		arguments = append(arguments, a.String())
	}
	return arguments
}

// parseWish reads KEY=VALUE arguments, and refuses what is wrong whatever the network's model is.
func parseWish(network, from, to string, arguments []string) (*wish, error) {
	w := &wish{network: network, from: from, to: to}
	for _, argument := range arguments {
		name, value, found := strings.Cut(argument, "=")
		all := keyNames(models...)
		switch {
		case !found:
			return nil, fmt.Errorf("%q: want KEY=VALUE, such as delay=200ms; keys are %s", argument, strings.Join(all, ", "))
		case !slices.Contains(all, name):
			return nil, fmt.Errorf("%q: there is no key %s: want one of %s", argument, name, strings.Join(all, ", "))
		case slices.ContainsFunc(w.assignments, func(a assignment) bool { return a.key == name }):
			return nil, fmt.Errorf("%q: %s is given twice: give it once", argument, name)
		}
		w.assignments = append(w.assignments, assignment{name, value})
	}
	if len(arguments) == 0 {
		return w, nil
	}
	model, err := w.someModel()
	if err != nil {
		return nil, err
	}
	_, err = w.as(model)
	return w, err
}

// someModel that has all of the keys: what it refuses of their values the others refuse as well.
func (w *wish) someModel() (string, error) {
	var keys []string
	for _, a := range w.assignments {
		for _, other := range keys {
			if len(modelsWith(a.key, other)) == 0 {
				return "", fmt.Errorf("%s is for networks of the model %s, and %s for %s: no network has both", other, inWords(modelsWith(other)), a.key, inWords(modelsWith(a.key)))
			}
		}
		keys = append(keys, a.key)
	}
	return modelsWith(keys...)[0], nil
}

func inWords(names []string) string { return strings.Join(names, " and ") }

// as is the change in a network of a model.
func (w *wish) as(model string) (v1alpha1.RadioChange, error) {
	change := v1alpha1.RadioChange{Network: w.network, From: w.from, To: w.to}
	for _, a := range w.assignments {
		i := slices.IndexFunc(keysOf[model], func(k key) bool { return k.name == a.key })
		if i < 0 {
			return change, fmt.Errorf("%q: network %s is of the model %s, which has no %s: want one of %s", a, w.network, model, a.key, strings.Join(keyNames(model), ", "))
		}
		if err := keysOf[model][i].set(&change, a.value); err != nil {
			return change, fmt.Errorf("%q: %w", a, err)
		}
	}
	return change, checkEnds(&change)
}

// checkEnds says what of a change cannot be limited to some nodes, and what of it is said twice.
func checkEnds(c *v1alpha1.RadioChange) error {
	switch {
	case c.Silent != nil && (c.From != "" || c.To != ""):
		return errors.New("silent is for the whole network: leave out --from and --to; for one node set transmit=false, or on a link network loss=100%")
	case c.To != "" && (c.Radio != nil || c.Schedule != "" || c.Jammer != nil):
		return fmt.Errorf("--to %s: a radio's frames reach everybody in range, not some receivers alone: leave out --to", c.To)
	case c.From != "" && c.Schedule != "":
		return fmt.Errorf("--from %s: a schedule is for the whole network: leave out --from", c.From)
	case c.From != "" && c.Jammer != nil:
		return fmt.Errorf("--from %s: a jammer is for the whole network: leave out --from", c.From)
	case c.Link != nil && c.Link.Loss != nil && c.Link.GilbertElliott != nil:
		return errors.New("loss and gilbertElliott are two models of the same thing: give one of them")
	case c.Link != nil && c.Link.LossCorrelation != nil && c.Link.GilbertElliott != nil:
		return errors.New("lossCorrelation is for loss; gilbertElliott has bursts of its own: give one of them")
	}
	return nil
}

// in is the change in a network.
func (w *wish) in(network v1alpha1.Network, waveform *v1alpha1.WaveformSpec) (v1alpha1.RadioChange, error) {
	change, err := w.as(waveform.Model())
	if err != nil {
		return change, err
	}
	return change, checkEffect(&change, network, waveform)
}

// checkEffect says what of a change the network would take and come to nothing.
func checkEffect(c *v1alpha1.RadioChange, network v1alpha1.Network, waveform *v1alpha1.WaveformSpec) error {
	some := c.From != "" && c.From != v1alpha1.EveryNode
	if r := c.Radio; some && r != nil && (r.Delay != nil || r.Jitter != nil) && network.Engine != v1alpha1.EngineEMANE {
		return fmt.Errorf("--from %s: delay and jitter are one for all radios of a network: change them by a command of their own, without --from", c.From)
	}
	if r := c.Radio; r != nil && r.Rate != nil && waveform.TDMA != nil && len(waveform.TDMA.AdaptiveRates) > 0 {
		return fmt.Errorf("rate=%s: the radios of network %s choose their rates by SINR, as its waveform has adaptiveRates: leave out rate", *r.Rate, network.Name)
	}
	if j := c.Jammer; j != nil && !j.Ended() && waveform.InterferenceCounted() == v1alpha1.InterferenceNone {
		return fmt.Errorf("jammer=%s: network %s counts no interference, so that a jammer disturbs nobody: its waveform wants interference OutOfBand or All", j.Name, network.Name)
	}
	return nil
}

func (c *cluster) set(ctx context.Context, experiment string, w *wish, out io.Writer) error {
	s, err := c.runningExperiment(ctx, experiment, "vignette set "+w.network+" "+strings.Join(w.arguments(), " "))
	if err != nil {
		return err
	}
	network, err := s.checkNames(w)
	if err != nil {
		return err
	}
	waveform, err := c.waveformOf(ctx, s.Experiment, network)
	if err != nil {
		return err
	}
	change, err := w.in(network, waveform)
	if err != nil {
		return err
	}
	typed := strings.Join(describeChange(change), " ")
	if err := readSchedule(&change); err != nil {
		return err
	}
	live := &v1alpha1.LiveChange{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: s.Name + "-"}}
	live.Spec = v1alpha1.LiveChangeSpec{Experiment: s.Name, Changes: []v1alpha1.RadioChange{change}}
	if err := c.kube.Create(ctx, live, client.FieldOwner(fieldManager)); err != nil {
		return explainChange(err, w.arguments())
	}
	err = c.awaitCondition(ctx, live, "the change", func(field string) string { return argumentOf(field, w.arguments()) }, func() ([]metav1.Condition, string) {
		return live.Status.Conditions, v1alpha1.ConditionApplied
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s%s\n", w.network, typed, holdsFrom(live.Status.AppliesAt, s.Status.T0))
	return err
}

// explainChange puts what the API server refuses into the words that were typed.
func explainChange(err error, arguments []string) error {
	return explainRefused(err, "LiveChange", func(field string) string { return argumentOf(field, arguments) })
}

// explainRefused object of a kind.
func explainRefused(err error, kind string, typed func(field string) string) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return explain(err)
	}
	var refusals []error
	for _, cause := range status.Status().Details.Causes {
		said := typed(cause.Field) + ": " + refusalText(kind, cause)
		if !slices.ContainsFunc(refusals, func(err error) bool { return err.Error() == said }) {
			refusals = append(refusals, errors.New(said))
		}
	}
	if len(refusals) == 0 {
		return explain(err)
	}
	return errors.Join(refusals...)
}

// schemaWords begin a refusal by the schema alone, such as spec.changes[0].link.delay in body should be at least 2 chars long.
var schemaWords = regexp.MustCompile(`^Invalid value: .*?: (\S+ in body )?`)

// refusalText is what a refusal says of a field, such as Invalid value: "string": must be a percentage.
func refusalText(kind string, cause metav1.StatusCause) string {
	m := schemaWords.FindStringSubmatch(cause.Message)
	if m == nil {
		return cause.Message
	}
	if must := validate.Must(kind, cause.Field); must != "" && m[1] != "" {
		return must
	}
	return strings.TrimPrefix(cause.Message, m[0])
}

// ofChange are the arguments and flags that set a change's fields besides its keys.
var ofChange = map[string]string{"network": "NETWORK", "from": "--from", "to": "--to"}

// argumentOf a field: the key that is its outermost part, as a jammer has a frequency as well. Without any it is the field.
func argumentOf(field string, arguments []string) string {
	if _, own, found := strings.Cut(field, "]."); found && ofChange[own] != "" {
		return ofChange[own]
	}
	for part := range strings.SplitSeq(field, ".") {
		for _, argument := range arguments {
			if key, _, _ := strings.Cut(argument, "="); key == part {
				return argument
			}
		}
	}
	return field
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

// checkNames says what the experiment has none of, and gives the network.
func (s *expandedExperiment) checkNames(w *wish) (v1alpha1.Network, error) {
	network, err := s.network(w.network)
	if err != nil {
		return network, err
	}
	for flag, name := range map[string]string{"--from": w.from, "--to": w.to} {
		if known := s.groupNames(); name != "" && name != v1alpha1.EveryNode && !slices.Contains(known, name) {
			return network, fmt.Errorf("%s %s: there is no such group or node in experiment %s: want one of %s", flag, name, s.Name, listNames(known))
		}
	}
	return network, nil
}

// showNetwork tells what a network began with and what has been changed since.
func (c *cluster) showNetwork(ctx context.Context, experiment, name string, out io.Writer) error {
	s, err := c.runningExperiment(ctx, experiment, "vignette set "+name)
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
	for _, b := range beginnings(network, state.Plan.Waveforms) {
		rows = append(rows, left("T0", b.what, strings.Join(b.holds, " ")))
	}
	for _, change := range changesOf(s.Spec.Timeline, state.Plan.LiveChanges, name) {
		rows = append(rows, left("T0 + "+wording.Time(change.at), change.what, strings.Join(describeChange(change.RadioChange), " ")))
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
