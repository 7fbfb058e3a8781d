package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/fieldpath"
	"vignette.dev/vignette/internal/core/origin"
	"vignette.dev/vignette/internal/environment"
	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Inputs that may differ from the record, if the user allows it.
const (
	inputScenario   = "scenario"
	inputConfigMaps = "configmaps"
)

var inputs = []string{inputScenario, inputConfigMaps}

// How a rerun names images.
const (
	imagesByDigest = "digests"
	imagesByTag    = "tags"
)

var imageForms = []string{imagesByDigest, imagesByTag}

type rerunOptions struct {
	uid, name, images string
	allow, set        []string
	dryRun, watch     bool
}

func newRerun(t *target) *cobra.Command {
	var o rerunOptions
	cmd := &cobra.Command{
		Use:   "rerun RECORD",
		Short: "Run an archived or downloaded run again, as its record says",
		Long: "rerun creates an experiment from a run record: the NAME of an experiment in the archive, the folder of a downloaded\n" +
			"run, or its run.json. The new experiment has the record's spec with all defaults, the same seed, the waveforms in\n" +
			"place, images by the digests that ran, and the compiled scenario. ConfigMaps must have the recorded\n" +
			"contents. Secrets have their present contents. Differences of the platform, the cluster and its hosts between then and\n" +
			"now are printed, and kept in the new run's record. The same seed gives the same random draws, not the same results.\n" +
			"--set changes a field of the spec, with a path such as networks[wan].link.rate, and null for none. The new run is then\n" +
			"based on the recorded one, and not a rerun of it.",
		Example: "  vignette rerun quickstart --watch\n" +
			"  vignette rerun quickstart --uid 0b6fd5cc-5c1e-4f5e-9d43-6a0f3c5f6d11 --name again\n" +
			"  vignette rerun quickstart-0b6fd5cc/run.json -n team-nor\n" +
			"  vignette rerun quickstart --set networks[wan].link.rate=19.2kbit --set duration=5m --dry-run\n" +
			"  vignette rerun quickstart --dry-run > again.yaml",
		Args:              oneArgument("the RECORD of a run"),
		ValidArgsFunction: t.completeRecord,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			return t.explainArchive(c.rerun(cmd.Context(), args[0], t.platform, o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.uid, "uid", "", "`UID` of the archived run, if the name has several")
	flags.StringVar(&o.name, "name", "", "`name` of the new experiment (default: NAME-rerun-N)")
	flags.StringVar(&o.images, "images", imagesByDigest, "`form` of the names of apps' own images: digests, or tags as the record's spec has them")
	flags.StringSliceVar(&o.allow, "allow-different", nil, "`inputs` that may differ from the record: "+strings.Join(inputs, ", "))
	flags.StringArrayVar(&o.set, "set", nil, "change a field of the spec, as `PATH=VALUE`; may be repeated")
	flags.BoolVar(&o.dryRun, "dry-run", false, "compare everything and print the new objects, and create nothing")
	flags.BoolVarP(&o.watch, "watch", "w", false, "follow the experiment to its end, or a live cluster until it is up")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	noCompletion(cmd, "uid", "name", "set")
	complete(cmd, "images", cobra.FixedCompletions(imageForms, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "allow-different", cobra.FixedCompletions(inputs, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o rerunOptions) check() error {
	if !slices.Contains(imageForms, o.images) {
		return fmt.Errorf("--images %q: want %s", o.images, strings.Join(imageForms, " or "))
	}
	for _, input := range o.allow {
		if !slices.Contains(inputs, input) {
			return fmt.Errorf("--allow-different %q: want %s", input, strings.Join(inputs, " or "))
		}
	}
	return nil
}

// completeRecord offers the experiments of the namespace, and files.
func (t *target) completeRecord(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, directive := t.completeExperiment(cmd, args, typed)
	if len(args) == 0 {
		directive = cobra.ShellCompDirectiveDefault
	}
	return names, directive
}

func (c *cluster) rerun(ctx context.Context, record, platform string, o rerunOptions, out, notes io.Writer) error {
	r := &rerun{cluster: c, options: o}
	if err := r.read(ctx, record); err != nil {
		return err
	}
	if err := r.buildExperiment(ctx); err != nil {
		return err
	}
	if err := r.applyChanges(); err != nil {
		return err
	}
	r.compare(ctx, platform)
	text, err := r.yaml()
	if err != nil {
		return err
	}
	objects, err := validateFile("the rerun of "+r.record.Name, text, notes, func(object validate.Awaited) bool { return c.has(ctx, object) })
	if err != nil {
		if len(o.set) > 0 {
			fmt.Fprintf(notes, "Nothing was created with --set %s\n", strings.Join(o.set, " --set "))
		}
		return err
	}
	fmt.Fprint(notes, r.explanation())
	if o.dryRun {
		_, err := out.Write(text)
		return err
	}
	return c.createAndFollow(ctx, objects, o.watch, out)
}

// createAndFollow creates an experiment, and follows it if it is to be watched.
func (c *cluster) createAndFollow(ctx context.Context, objects []*unstructured.Unstructured, watch bool, out io.Writer) error {
	experiments, err := c.submit(ctx, objects, out)
	if err != nil {
		return err
	}
	e := experiments[0]
	if watch {
		return c.watch(ctx, e, newView(out))
	}
	_, err = fmt.Fprint(out, followHint(e))
	return err
}

// rerun under construction.
type rerun struct {
	*cluster
	options rerunOptions
	record  runapi.RunRecord
	// source of the record, for people.
	source     string
	experiment *v1alpha1.Experiment
	// spec without changes, and with those of --set.
	spec, changed map[string]any
	// run that the experiment repeats or is based on, with the changes.
	run runapi.Rerun
	// scenario to create from the archive's compiled one; nil if the recorded one exists, or none is needed.
	scenario *v1alpha1.Scenario
	// notes on what is not repeated, for people.
	notes []string
	// differences, and what could not be compared.
	differences []runapi.Difference
	unknown     []string
}

func (r *rerun) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *rerun) addDifference(what, before, now string) {
	r.differences = append(r.differences, runapi.Difference{What: what, Before: before, Now: now})
}

func (r *rerun) allows(input string) bool { return slices.Contains(r.options.allow, input) }

// read the record: a file, a downloaded run's folder, or a run in the archive.
func (r *rerun) read(ctx context.Context, record string) error {
	file, onDisk := recordFile(record)
	if onDisk && r.options.uid != "" {
		return fmt.Errorf("--uid is for runs in the archive, and %s is a file", file)
	}
	if !onDisk && (strings.ContainsRune(record, filepath.Separator) || strings.HasSuffix(record, ".json")) {
		return fmt.Errorf("there is no %s: want the run.json of a run, its folder, or the NAME of an experiment in the archive", record)
	}
	var text []byte
	var err error
	if onDisk {
		r.source = file
		text, err = os.ReadFile(file)
	} else {
		text, err = r.readArchived(ctx, record)
	}
	if err == nil {
		r.record, err = runapi.ReadRunRecord(r.source, text)
	}
	return err
}

// recordFile is the run.json of an argument, if it is on the disk. A name that is also a folder's means the folder only if that has a
// record.
func recordFile(record string) (file string, onDisk bool) {
	for _, file := range []string{filepath.Join(record, runFile), record} {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, true
		}
	}
	return "", false
}

func (r *rerun) readArchived(ctx context.Context, name string) ([]byte, error) {
	uid, err := r.findRun(ctx, name, r.options.uid)
	if err != nil {
		return nil, err
	}
	r.source = "the archive's run.json of run " + uid
	content, err := r.archive.File(ctx, uid, runFile)
	if runclient.IsNotFound(err) {
		return nil, fmt.Errorf("run %s of %s has no run record", uid, name)
	}
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// compare the recorded environment with the cluster's.
func (r *rerun) compare(ctx context.Context, platform string) {
	if r.record.Environment == nil {
		r.unknown = append(r.unknown, "the environment, of which the record has nothing")
		return
	}
	now, unknown := r.environmentNow(ctx, platform)
	r.unknown = append(r.unknown, unknown...)
	r.differences = append(r.differences, environment.Differences(r.record.Environment, now)...)
}

// explanation of what is repeated, and what is not, for people.
func (r *rerun) explanation() string {
	var b strings.Builder
	what := "Rerun of"
	if len(r.run.Changes) > 0 {
		what = "Based on"
	}
	fmt.Fprintf(&b, "%s %s, run %s of namespace %s, from %s\n", what, r.record.Name, r.record.UID, r.record.Namespace, r.source)
	if len(r.run.Changes) > 0 {
		b.WriteString("\n" + changesTable(r.run) + "\n")
	} else if len(r.options.set) > 0 {
		b.WriteString("--set changes nothing: the spec has these values.\n")
	}
	if len(r.differences) > 0 {
		rows := table{left("DIFFERENCE", "RECORDED", "NOW")}
		for _, d := range r.differences {
			rows = append(rows, left(d.What, d.Before, d.Now))
		}
		b.WriteString("\n" + rows.String() + "\n")
	} else if len(r.run.Changes) > 0 {
		b.WriteString("Otherwise no difference from the record was found.\n")
	} else {
		b.WriteString("No difference from the record was found.\n")
	}
	for _, unknown := range r.unknown {
		b.WriteString("Not compared: " + unknown + "\n")
	}
	for _, note := range r.notes {
		b.WriteString("Note: " + note + "\n")
	}
	return b.String()
}

// changesTable names the changed fields of a spec.
func changesTable(run runapi.Rerun) string {
	rows := table{left("CHANGE", "FROM", "TO")}
	for _, c := range run.Changes {
		rows = append(rows, left(c.Path, cmp.Or(oneLine(c.From), "none"), cmp.Or(oneLine(c.To), "none")))
	}
	text := rows.String()
	if run.MoreChanges > 0 {
		text += fmt.Sprintf("and %d more\n", run.MoreChanges)
	}
	return text
}

// applyChanges of --set to the spec.
func (r *rerun) applyChanges() (err error) {
	if r.spec, err = origin.Fields(&r.experiment.Spec); err != nil {
		return err
	}
	if r.changed, err = origin.Fields(&r.experiment.Spec); err != nil {
		return err
	}
	for _, setting := range r.options.set {
		typed, value, found := strings.Cut(setting, "=")
		if !found {
			return fmt.Errorf("--set %q: want PATH=VALUE, such as networks[wan].link.rate=19.2kbit", setting)
		}
		if err := setField(r.changed, typed, value); err != nil {
			return fmt.Errorf("--set %s: %w", setting, err)
		}
	}
	if r.changed["stop"] != nil {
		return errors.New("--set stop: a rerun that is stopped before it starts measures nothing: omit it")
	}
	return nil
}

func setField(spec map[string]any, typed, value string) error {
	path, err := fieldpath.Parse(typed)
	if err != nil {
		return err
	}
	parsed, err := fieldpath.Value(fieldpath.Experiment(), path, value)
	if err != nil {
		return err
	}
	return fieldpath.Set(spec, fieldpath.Experiment(), path, parsed)
}

// yaml of the objects to create, the scenario first.
func (r *rerun) yaml() ([]byte, error) {
	about := runapi.Rerun{Namespace: r.record.Namespace, Name: r.record.Name, UID: r.record.UID, Differences: r.differences}
	var err error
	if r.run, err = origin.Mark(r.experiment, about, r.spec, r.changed); err != nil {
		return nil, err
	}
	return r.manifests(r.changed)
}

// manifests of the scenario, if there is one, and of the experiment with a spec.
func (r *rerun) manifests(spec map[string]any) (all []byte, err error) {
	if r.scenario != nil {
		if all, err = manifestOf("Scenario", r.scenario, nil); err != nil {
			return nil, err
		}
		all = append(all, "---\n"...)
	}
	text, err := manifestOf("Experiment", r.experiment, spec)
	return append(all, text...), err
}

// manifestOf an object as a user would write it, with another spec if one is given.
func manifestOf(kind string, object any, spec map[string]any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = v1alpha1.GroupVersion.String(), kind
	delete(fields, "status")
	if spec != nil {
		fields["spec"] = spec
	}
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return yaml.Marshal(fields)
}
