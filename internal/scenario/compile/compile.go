// Package compile compiles the content of a Scenario object: files, or a generated movement, and the
// pathloss that a propagation model computes from positions.
package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/synthetic"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// maxUnpacked is the largest unpacked size of a packed file.
const maxUnpacked = 1 << 30

// maxUnknownKinds is the most unknown kinds that a Scenario's status lists.
const maxUnknownKinds = 16

// Result is the result of a compilation.
type Result struct {
	// Digest is "sha256:…" of the compiled scenario's bytes.
	Digest string
	// Statistics are those in a Scenario's status.
	Statistics v1alpha1.ScenarioStatistics
	// Start is the date of the scenario's time 0, if its files have dates.
	Start time.Time
	// Warnings say for people which parts of the source the compiled scenario lacks, and why.
	Warnings []string
}

// Open returns the bytes of a source, unpacked or not.
type Open func(v1alpha1.ScenarioSource) ([]byte, error)

// Compile writes the compiled scenario of a spec. Equal specs and sources give equal bytes. The author has to fix its errors,
// unless ctx has ended or w fails. Errors about a file name the file and the line. Compile does not accept
// a compiled scenario (field compiled).
func Compile(ctx context.Context, spec v1alpha1.ScenarioSpec, open Open, w io.Writer) (Result, error) {
	return run(ctx, spec, open, func(c *compilation) (Result, error) { return c.compile(w) })
}

// run checks a spec and does a part of its compilation.
func run[T any](ctx context.Context, spec v1alpha1.ScenarioSpec, open Open, do func(c *compilation) (T, error)) (result T, err error) {
	if spec.Compiled != "" {
		return result, fmt.Errorf("the scenario is compiled already, as %s: there is nothing to compile", spec.Compiled)
	}
	if err := Check(&spec); err != nil {
		return result, err
	}
	done, err := do(&compilation{ctx: ctx, spec: spec, open: open, unknown: map[string]int64{}})
	if ctx.Err() != nil { // in place of any resulting error
		return result, ctx.Err()
	}
	return done, err
}

func (c *compilation) compile(w io.Writer) (Result, error) {
	b := scenario.NewBuilder(scenario.Options{Sorted: c.spec.Format == v1alpha1.ScenarioSynthetic, Context: c.ctx})
	defer b.Close()
	if err := c.read(b); err != nil {
		return Result{}, err
	}
	if c.spec.Propagation == nil {
		return c.finish(b, w)
	}
	return c.propagate(b, w)
}

// Positions returns the content of a spec without the pathloss of its propagation, which takes a fraction of the time that Compile does.
// It is in a file that vanishes when the scenario is no longer used.
func Positions(ctx context.Context, spec v1alpha1.ScenarioSpec, open Open) (*scenario.Scenario, error) {
	return run(ctx, spec, open, (*compilation).positions)
}

func (c *compilation) positions() (*scenario.Scenario, error) {
	b := scenario.NewBuilder(scenario.Options{Sorted: c.spec.Format == v1alpha1.ScenarioSynthetic, Context: c.ctx})
	defer b.Close()
	if err := c.read(b); err != nil {
		return nil, err
	}
	file, err := scenario.UnnamedFile()
	if err != nil {
		return nil, err
	}
	if _, err := b.Write(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return opened(file)
}

type compilation struct {
	ctx      context.Context
	spec     v1alpha1.ScenarioSpec
	open     Open
	unknown  map[string]int64
	warnings []string
	// start is the start of files with dates.
	start time.Time
	// presence is the presence of platforms in files that are no tracks.
	presence tracks.Presence
	// antennas are the antennas for platforms; nil without a manifest.
	antennas antenna.Profiles
}

func (c *compilation) read(b *scenario.Builder) error {
	if c.spec.Format == v1alpha1.ScenarioSynthetic {
		if c.spec.Synthetic == nil {
			return errors.New("format synthetic needs the field synthetic")
		}
		return synthetic.Generate(c.ctx, *c.spec.Synthetic, b)
	}
	format, err := formatOf(c.spec.Format)
	if err != nil {
		return err
	}
	files, err := c.fetchAll()
	if err != nil {
		return err
	}
	if format.tracks != nil {
		return c.readTracks(format.tracks, files, b)
	}
	if err := c.readAntennas(b); err != nil {
		return err
	}
	return c.readEvents(format, files, b)
}

func (c *compilation) fetchAll() (files []*file, err error) {
	sources := c.spec.Files()
	if len(sources) == 0 {
		return nil, fmt.Errorf("format %s needs source or sources", c.spec.Format)
	}
	for _, source := range sources {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		text, err := c.fetch(source)
		if err != nil {
			return nil, err
		}
		files = append(files, &file{source: source, text: text})
	}
	return files, nil
}

// readEvents reads files that are no tracks, one after the other.
func (c *compilation) readEvents(format format, files []*file, b *scenario.Builder) error {
	if err := c.setCommonOrigin(files); err != nil {
		return err
	}
	for _, f := range files {
		report, err := format.events(c.reader(f.text), f, b)
		if err != nil {
			return err
		}
		f.text = nil
		for kind, n := range report.Unknown {
			c.unknown[kind] += n
		}
		for _, warning := range report.Warnings {
			c.warnings = append(c.warnings, f.name()+": "+warning)
		}
		c.warnOfOverlap(f, b.TakeSpans())
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	if pause := c.presence.Pause(); pause != "" {
		c.warnings = append(c.warnings, pause)
	}
	return nil
}

// name returns a source's name for errors.
func name(s v1alpha1.ScenarioSource) string { return s.ConfigMap + "/" + s.Key }

func (c *compilation) fetch(source v1alpha1.ScenarioSource) ([]byte, error) {
	text, err := c.open(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(source), err)
	}
	packed, err := Unpack(source.Key, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(source), err)
	}
	text, err = io.ReadAll(io.LimitReader(&contextReader{c.ctx, packed}, maxUnpacked+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(source), err)
	}
	if len(text) > maxUnpacked {
		return nil, fmt.Errorf("%s: has more than %d MiB when unpacked: want a part of it", name(source), maxUnpacked>>20)
	}
	return text, nil
}

// reader reads a text until the context ends.
func (c *compilation) reader(text []byte) io.Reader {
	return &contextReader{c.ctx, bytes.NewReader(text)}
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// finish writes the scenario and fills in the result.
func (c *compilation) finish(b *scenario.Builder, w io.Writer) (Result, error) {
	file, err := scenario.UnnamedFile()
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	digest, err := b.Write(io.MultiWriter(w, file))
	if err != nil {
		return Result{}, err
	}
	s, err := opened(file)
	if err != nil {
		return Result{}, err
	}
	if err := c.checkUsedAntennas(s); err != nil {
		return Result{}, err
	}
	statistics := Statistics(s)
	kinds := scenario.Report{Unknown: c.unknown}.UnknownSentences()
	if len(kinds) > maxUnknownKinds {
		c.warnings = append(c.warnings, fmt.Sprintf("%d more kinds of sentences are not known", len(kinds)-maxUnknownKinds))
		kinds = kinds[:maxUnknownKinds]
	}
	statistics.UnknownSentences = kinds
	if statistics.Platforms == 0 {
		return Result{}, c.nothing(kinds)
	}
	if err := checkMembers(c.spec.OrderOfBattle, s.Platforms()); err != nil {
		return Result{}, err
	}
	for _, name := range s.OtherContents() {
		c.warnings = append(c.warnings, takenBy[name])
	}
	return Result{Digest: digest, Statistics: statistics, Start: c.start, Warnings: slices.Clip(c.warnings)}, nil
}

// Statistics are those of a compiled scenario that its object has.
func Statistics(s *scenario.Scenario) v1alpha1.ScenarioStatistics {
	has := s.Statistics()
	return v1alpha1.ScenarioStatistics{Platforms: int32(has.Platforms), PlatformNumbers: v1alpha1.PlatformRanges(s.Platforms()), Duration: apiDuration(has.Duration), Pathloss: has.Pathloss, Positions: has.Positions,
		AntennaProfiles: v1alpha1.PlatformRanges(s.AntennaPlatforms()), AntennaFileBytes: int64(emane.AntennaFileBytes(s)), FadingSelections: s.HasFadingSelections()}
}

// takenBy says which radios take a scenario's other contents.
var takenBy = map[string]string{
	scenario.CommEffects:      "the scenario has comm effects: they hold for networks of the link model with commEffects: true",
	scenario.FadingSelections: "the scenario has fading selections: they hold for networks with engine emane, between platforms with positions",
	scenario.AntennaEvents:    "the sources have antenna profiles, but antennaProfiles names no manifest: every radio keeps its antennaGain",
}

// nothing returns the error of sources without any known sentence, with the unknown ones.
func (c *compilation) nothing(kinds []string) error {
	passed := "its sources are empty"
	if len(kinds) > 0 {
		passed = "passed over were " + strings.Join(kinds, ", ")
	}
	format, _ := formatOf(c.spec.Format) // it was read
	return fmt.Errorf("the scenario has no platforms: %s: want %s", passed, format.wants)
}

// apiDuration formats a duration for the API: rounded to milliseconds, without a zero part.
func apiDuration(d time.Duration) v1alpha1.Duration {
	return v1alpha1.Duration(wording.Time(d.Round(time.Millisecond)))
}

func opened(file *os.File) (*scenario.Scenario, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return scenario.Open(file, info.Size())
}
