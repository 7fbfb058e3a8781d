package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/orderofbattle"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/scenario/picture"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func newScenario(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scenario",
		Short: "Look into scenarios, and store those that are too large for ConfigMaps",
		Long: "scenario reads movements of platforms: event logs of EMANE, rows of pairs with pathloss, rows of positions, tracks in GPX, KML\n" +
			"and NMEA 0183, movement of ns-2 and CORE, SUMO's floating car data, and manifests of Scenarios, whose files lie beside them.",
		Example: "  vignette scenario inspect company1.eel\n" +
			"  vignette scenario push company1.eel",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(endOnInterrupt(newInspect()), newPush(t))
	return cmd
}

func completeScenario(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return append(compile.Endings(), "yaml", "yml"), cobra.ShellCompDirectiveFilterFileExt
}

func completeFormat(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return compile.FormatNames(), cobra.ShellCompDirectiveNoFileComp
}

func atLeastOneFile(cmd *cobra.Command, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("%s needs at least one FILE", cmd.CommandPath())
	}
	return nil
}

type inspectOptions struct {
	files     fileOptions
	picture   string
	limitDB   float64
	every, at time.Duration
}

func newInspect() *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect FILE...",
		Short: "Describe a scenario: platforms, duration, order of battle, hops over time, a picture",
		Long: "inspect compiles a scenario and describes it: platforms, duration, who commands whom and who is on which network, the\n" +
			"hops between platforms over time, and how well they are connected. Several files make one scenario, such as\n" +
			"locations and pathloss. Errors name file and line. Two platforms are neighbours where the pathloss\n" +
			"between them is no more than --limit.",
		Example: "  vignette scenario inspect company1.eel\n" +
			"  vignette scenario inspect --format anglova-csv --limit 110 pairs.csv.gz\n" +
			"  vignette scenario inspect alpha.gpx bravo.gpx --align Sources\n" +
			"  vignette scenario inspect company1.eel --antenna-profiles antennas/antennaprofiles.xml\n" +
			"  vignette scenario inspect scenarios/anglova-like/scenario.yaml -o anglova-like.svg --at 30m",
		Args:              atLeastOneFile,
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := o.check(cmd.Flags().Changed("every"), cmd.Flags().Changed("at")); err != nil {
				return err
			}
			return withScenario(cmd.Context(), files, o.files, func(c *compiledScenario) error { return o.inspect(cmd.Context(), cmd.OutOrStdout(), c) })
		},
	}
	flags := cmd.Flags()
	o.files.addFlags(cmd)
	flags.Float64Var(&o.limitDB, "limit", scenario.DefaultPathlossLimitDB, "pathloss in `dB` up to which two platforms are neighbours")
	flags.DurationVar(&o.every, "every", 0, "`time` between two lines of the table (default: a tenth of the duration)")
	flags.StringVarP(&o.picture, "output", "o", "", "draw the scenario into this `file`, as SVG")
	flags.DurationVar(&o.at, "at", 0, "`moment` of the picture's map")
	noCompletion(cmd, "limit", "every", "at")
	complete(cmd, "output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"svg"}, cobra.ShellCompDirectiveFilterFileExt
	})
	return cmd
}

// check the options that need no scenario.
func (o *inspectOptions) check(everyGiven, atGiven bool) error {
	switch {
	case o.picture != "" && filepath.Ext(o.picture) != ".svg":
		return fmt.Errorf("--output %s: pictures are SVG: give the file a name that ends in .svg", o.picture)
	case everyGiven && o.every <= 0:
		return fmt.Errorf("--every %s: want a time above zero, such as 1m", o.every)
	case o.at < 0:
		return fmt.Errorf("--at %s: want a moment of the scenario, such as 30m", o.at)
	case atGiven && o.picture == "":
		return fmt.Errorf("--at %s is for the picture: add --output FILE.svg", o.at)
	case math.IsNaN(o.limitDB):
		return errors.New("--limit NaN: want a pathloss in dB, such as 121")
	}
	return nil
}

// maxRows of the table.
const maxRows = 10_000

// checkEvery before the table is made, which could fill the memory.
func (o *inspectOptions) checkEvery(s *scenario.Scenario) error {
	rows := s.Moments(o.every)
	if o.every <= 0 || rows <= maxRows {
		return nil
	}
	least := (s.Duration()/(maxRows-1) + time.Second).Truncate(time.Second)
	return fmt.Errorf("--every %s: the table would have %d rows: want at most %d, by --every %s or more", wording.Time(o.every), rows, maxRows, wording.Time(least))
}

func (o *inspectOptions) inspect(ctx context.Context, out io.Writer, c *compiledScenario) error {
	s := c.scenario
	if err := o.checkEvery(s); err != nil {
		return err
	}
	if o.at > s.Duration() {
		return fmt.Errorf("--at %s: the scenario ends at %s: want no later moment", wording.Time(o.at), wording.Time(s.Duration()))
	}
	fmt.Fprintf(out, "platforms  %d: %s\n", len(s.Platforms()), v1alpha1.PlatformRanges(s.Platforms()))
	fmt.Fprintf(out, "duration   %s\n", wording.Time(s.Duration()))
	if !c.start.IsZero() {
		fmt.Fprintf(out, "start      %s\n", c.start.Format(time.RFC3339Nano))
	}
	fmt.Fprintf(out, "positions  %s\n", yesNo(s.HasPositions()))
	fmt.Fprintf(out, "pathloss   %s\n", yesNo(s.HasPathloss()))
	if err := writeAntennas(out, s); err != nil {
		return err
	}
	fmt.Fprintf(out, "digest     %s\n", c.digest)
	for _, kind := range c.unknown {
		fmt.Fprintf(out, "passed over: %s\n", kind)
	}
	for _, warning := range c.warnings {
		fmt.Fprintf(out, "warning: %s\n", warning)
	}
	writeOrderOfBattle(out, c.order)
	if s.HasPathloss() {
		if err := o.table(ctx, out, s); err != nil {
			return err
		}
	}
	if o.picture == "" {
		return nil
	}
	return o.draw(ctx, s)
}

// writeAntennas lists the platforms with an antenna profile: the first one, and from when on they have it.
func writeAntennas(out io.Writer, s *scenario.Scenario) error {
	type first struct {
		at      time.Duration
		profile int
	}
	platforms, cursor := map[first][]int{}, s.NewCursor()
	starts := slices.SortedFunc(slices.Values(s.AntennaStarts()), func(a, b scenario.AntennaStart) int { return cmp.Compare(a.At, b.At) })
	for _, start := range starts {
		if err := cursor.Seek(start.At); err != nil {
			return err
		}
		i, _ := s.Index(start.Platform)
		profile, _ := cursor.AntennaProfile(i)
		key := first{start.At, profile.ID}
		platforms[key] = append(platforms[key], start.Platform)
	}
	firsts := slices.SortedFunc(maps.Keys(platforms), func(a, b first) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.profile, b.profile)) })
	for _, f := range firsts {
		fmt.Fprintf(out, "antennas   %s: profile %d from %s\n", v1alpha1.PlatformRanges(slices.Sorted(slices.Values(platforms[f]))), f.profile, wording.Time(f.at))
	}
	return nil
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// columns of hops in the table; the last one counts all further ones.
const columns = 6

// table of the hops between ordered pairs over time, in percent.
func (o *inspectOptions) table(ctx context.Context, out io.Writer, s *scenario.Scenario) error {
	every := o.every
	if every <= 0 {
		every = max(s.Duration()/10, time.Second)
	}
	line, err := s.Timeline(ctx, every, o.limitDB)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\npairs by hops over links of up to %g dB:\n%10s", o.limitDB, "at")
	for hops := 1; hops < columns; hops++ {
		fmt.Fprintf(out, "%8d", hops)
	}
	fmt.Fprintf(out, "%7d+%8s%8s%8s\n", columns, "none", "mean", "parts")
	for _, at := range line {
		o.row(out, wording.Time(at.At.Truncate(time.Second)), at.Connectivity, fmt.Sprint(len(at.Components)))
	}
	o.row(out, "all", scenario.Total(line), "")
	return nil
}

func (o *inspectOptions) row(out io.Writer, name string, c scenario.Connectivity, parts string) {
	pairs, counts := 0, make([]int, columns+1)
	for hops, n := range c.Hops {
		pairs += n
		counts[min(hops, columns)] += n
	}
	fmt.Fprintf(out, "%10s", name)
	for hops := 1; hops <= columns; hops++ {
		fmt.Fprintf(out, "%8s", percentOf(counts[hops], pairs))
	}
	fmt.Fprintf(out, "%8s%8.2f%8s\n", percentOf(counts[0], pairs), c.MeanHops(), parts)
}

func percentOf(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

func (o *inspectOptions) draw(ctx context.Context, s *scenario.Scenario) (err error) {
	f, err := os.Create(o.picture)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return picture.Write(ctx, f, s, picture.Options{At: o.at, LimitDB: o.limitDB})
}

func newPush(t *target) *cobra.Command {
	var o fileOptions
	cmd := &cobra.Command{
		Use:   "push FILE...",
		Short: "Compile a scenario and store it in the archive",
		Long: "push compiles a scenario and stores it in the archive by its digest, for files that are too large for ConfigMaps, and prints\n" +
			"what to write into a Scenario: format and compiled. Known scenarios are not sent again.",
		Example: "  vignette scenario push company1.eel\n" +
			"  vignette scenario push --format anglova-csv pairs.csv.gz\n" +
			"  vignette scenario push locations.eel pathloss.eel",
		Args:              atLeastOneFile,
		ValidArgsFunction: completeScenario,
		RunE: t.run(func(c *cluster, cmd *cobra.Command, files []string) error {
			return withScenario(cmd.Context(), files, o, func(compiled *compiledScenario) error {
				return t.explainPush(c.push(cmd.Context(), compiled, cmd.OutOrStdout(), cmd.ErrOrStderr()))
			})
		}),
	}
	o.addFlags(cmd)
	return cmd
}

// push a compiled scenario, unless the archive has it.
func (c *cluster) push(ctx context.Context, compiled *compiledScenario, out, notes io.Writer) error {
	has, err := c.archive.HasScenario(ctx, compiled.digest)
	if err != nil {
		return err
	}
	if has {
		fmt.Fprintln(notes, "the archive has it already")
	} else {
		if _, err := compiled.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := c.archive.PutScenario(ctx, compiled.digest, io.NopCloser(compiled.file)); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "format: %s\ncompiled: %s\n", compiled.format, compiled.digest)
	return nil
}

// explainPush adds what to do about an error of the archive.
func (t *target) explainPush(err error) error {
	if e := asServerError(err); e != nil && e.Status == http.StatusForbidden {
		return fmt.Errorf("%w: storing scenarios needs the role vignette-experimenter in the namespace (docs/how-to/share-a-cluster.md)", err)
	}
	return t.explainArchive(err)
}

// compiledScenario is a scenario in a file without a name.
type compiledScenario struct {
	scenario          *scenario.Scenario
	file              *os.File
	digest            string
	format            v1alpha1.ScenarioFormat
	unknown, warnings []string
	order             *orderofbattle.Order
	// start is the date of time 0, if the files have dates.
	start time.Time
}

// withScenario compiles files, or opens a compiled one, and calls do.
func withScenario(ctx context.Context, files []string, o fileOptions, do func(*compiledScenario) error) error {
	spec, open, err := scenarioOf(files, o)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "scenario-*")
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	result, err := compile.Compile(ctx, spec, open, file)
	if err != nil {
		return err
	}
	order, err := orderofbattle.Read(spec.OrderOfBattle)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	s, err := scenario.Open(file, info.Size())
	if err != nil {
		return err
	}
	return do(&compiledScenario{scenario: s, file: file, digest: result.Digest, format: spec.Format,
		unknown: result.Statistics.UnknownSentences, warnings: result.Warnings, order: order, start: result.Start})
}

// scenarioOf files: their spec, and how to open its sources.
func scenarioOf(files []string, o fileOptions) (spec v1alpha1.ScenarioSpec, open compile.Open, err error) {
	if ext := filepath.Ext(files[0]); ext == ".yaml" || ext == ".yml" {
		return manifest(files, o)
	}
	spec.Format = v1alpha1.ScenarioFormat(o.format)
	if spec.Tracks, err = o.tracks(); err != nil {
		return spec, nil, err
	}
	for _, name := range files {
		found := compile.FormatOfFile(name)
		if found == "" && o.format == "" {
			return spec, nil, fmt.Errorf("%s: what is in it? Say --format %s", name, wording.Or(compile.FormatNames()))
		}
		spec.Format = cmp.Or(spec.Format, found)
		if o.format == "" && found != spec.Format {
			return spec, nil, fmt.Errorf("%s is %s and %s is %s: files of one format make a scenario", files[0], spec.Format, name, found)
		}
		spec.Sources = append(spec.Sources, sourceOf(name))
	}
	if o.antennaProfiles != "" {
		manifest := sourceOf(o.antennaProfiles)
		spec.AntennaProfiles = &manifest
	}
	return spec, func(s v1alpha1.ScenarioSource) ([]byte, error) { return os.ReadFile(filepath.Join(s.ConfigMap, s.Key)) }, nil
}

// sourceOf a file: its folder stands for the ConfigMap.
func sourceOf(file string) v1alpha1.ScenarioSource {
	return v1alpha1.ScenarioSource{ConfigMap: filepath.Dir(file), Key: filepath.Base(file)}
}

// manifest of a Scenario. The files of its sources are in ConfigMaps in the same file, or beside it with the names of their keys.
func manifest(files []string, o fileOptions) (spec v1alpha1.ScenarioSpec, open compile.Open, err error) {
	if len(files) > 1 || o != (fileOptions{}) {
		return spec, nil, fmt.Errorf("%s is a manifest, which says all: give it alone, without --format and flags about tracks and antennas", files[0])
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return spec, nil, err
	}
	object, inFile, findings := validate.ScenarioIn(files[0], text)
	for _, f := range findings {
		if !f.Warning {
			return spec, nil, errors.New(f.String())
		}
	}
	if object == nil {
		return spec, nil, fmt.Errorf("%s: want the manifest of a Scenario", files[0])
	}
	return object.Spec, func(s v1alpha1.ScenarioSource) ([]byte, error) {
		if content, err := inFile(s); err == nil {
			return content, nil
		}
		return os.ReadFile(filepath.Join(filepath.Dir(files[0]), filepath.Base(s.Key)))
	}, nil
}
