package mapdata

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/digests"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// ScenarioPreview is what vignette scenario inspect says of it. Times are seconds after its start.
type ScenarioPreview struct {
	DurationSeconds float64           `json:"durationSeconds"`
	Platforms       []PreviewPlatform `json:"platforms"`
	// Pathloss reports whether any pathloss is known.
	Pathloss bool     `json:"pathloss"`
	Warnings []string `json:"warnings"`
	// LimitDecibels of pathloss up to which two platforms are neighbours.
	LimitDecibels float64 `json:"limitDB"`
	// AtSeconds is the moment of Links.
	AtSeconds float64        `json:"atSeconds"`
	Links     []PlatformLink `json:"links"`
	// LeftOut links have a higher pathloss than those above, because there are too many.
	LeftOut int       `json:"leftOut"`
	Hops    []HopsAt  `json:"hops"`
	Between []LossAt  `json:"between"`
	Terrain *Terrain  `json:"terrain"`
	Pair    *[2]int32 `json:"pair"`
}

// PreviewPlatform is a platform's movement.
type PreviewPlatform struct {
	Number int `json:"number"`
	// Track has one point for a platform that stands. Between two points it moves evenly.
	Track []Point `json:"track"`
}

// PlatformLink from one platform to another.
type PlatformLink struct {
	From int `json:"from"`
	To   int `json:"to"`
	// Pathloss in dB.
	Pathloss float64 `json:"pathloss"`
}

// HopsAt are the hops between ordered pairs of platforms at a moment.
type HopsAt struct {
	AtSeconds float64 `json:"atSeconds"`
	// Counts of pairs: without any path, with one hop, with two …
	Counts []int `json:"counts"`
	// Mean hops of the pairs with a path.
	Mean float64 `json:"mean"`
	// Parts that are not connected with each other.
	Parts int `json:"parts"`
}

// LossAt is the pathloss from the first platform of the pair to the second at a moment; null if it is not known.
type LossAt struct {
	AtSeconds float64  `json:"atSeconds"`
	Pathloss  *float64 `json:"pathloss"`
}

// PreviewQuery says what of a scenario is wanted.
type PreviewQuery struct {
	// At is the moment of the links.
	At time.Duration
	// LimitDB of pathloss of neighbours; scenario.DefaultPathlossLimitDB if 0.
	LimitDB float64
	// From and To are the platforms of Between; 0 for none.
	From, To int
}

const (
	// MaxPreviewBytes of the objects.
	MaxPreviewBytes = 8 << 20
	// maxSourceBytes of all unpacked files, and maxCompiledBytes of the compiled scenario, which are in memory.
	maxSourceBytes, maxCompiledBytes = 64 << 20, 64 << 20
	// maxPreviewPairs is the most pairs of platforms times seconds of a movement that is generated: 100 platforms for an hour.
	maxPreviewPairs = 20_000_000
	// maxKeptPreviews of scenarios that were read, and their memory: an open editor asks for its scenario again and again.
	maxKeptPreviews, maxKeptPreviewBytes = 8, 128 << 20
	// hopMoments of the hops, and lossMoments of the pathloss between two platforms.
	hopMoments, lossMoments = 60, 300
)

// previewedFile is the name of the text in errors.
const previewedFile = "scenario.yaml"

// Preview a text with one Scenario and the ConfigMaps that it names.
func (m *Maps) Preview(ctx context.Context, text []byte, query PreviewQuery) (*ScenarioPreview, error) {
	if len(text) > MaxPreviewBytes {
		return nil, errorf(http.StatusRequestEntityTooLarge, "the objects have more than %d MiB: vignette scenario inspect reads larger ones", MaxPreviewBytes>>20)
	}
	object, open, findings := validate.ScenarioIn(previewedFile, text)
	if err := refusal(findings); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errorf(http.StatusUnprocessableEntity, "the text has no Scenario: want one, and the ConfigMaps that it names")
	}
	if err := checkPreviewSize(&object.Spec); err != nil {
		return nil, err
	}
	done, err := m.work(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, m.PreviewTime)
	defer cancel()
	p := previewer{ctx: limited, maps: m, spec: object.Spec, open: open, query: query}
	made, err := p.preview()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if limited.Err() != nil {
		return nil, errorf(http.StatusUnprocessableEntity, "the scenario takes more than %s to compile: preview a shorter one, or run vignette scenario inspect", m.PreviewTime)
	}
	return made, err
}

// refusal of a text by its errors.
func refusal(findings []validate.Finding) error {
	var words []string
	for _, f := range findings {
		if !f.Warning {
			words = append(words, f.String())
		}
	}
	if len(words) == 0 {
		return nil
	}
	return errorf(http.StatusUnprocessableEntity, "%s", strings.Join(words, "\n"))
}

// checkPreviewSize refuses a generated movement that would take too long.
func checkPreviewSize(spec *v1alpha1.ScenarioSpec) error {
	if spec.Compiled != "" {
		return errorf(http.StatusUnprocessableEntity, "spec.compiled: the scenario is compiled already, as %s: a run with it shows its movement", spec.Compiled)
	}
	s := spec.Synthetic
	if s == nil {
		return nil
	}
	platforms, seconds := int64(s.Platforms), int64(s.Duration.Std()/time.Second)+1
	if pairs := platforms * (platforms - 1) / 2 * seconds; pairs > maxPreviewPairs {
		return errorf(http.StatusUnprocessableEntity, "spec.synthetic: %d platforms for %s have a pathloss of %d pairs and seconds: a preview has at most %d: want fewer platforms or a shorter duration",
			platforms, s.Duration, pairs, maxPreviewPairs)
	}
	return nil
}

// limitedBuffer refuses more than maxCompiledBytes.
type limitedBuffer struct{ bytes.Buffer }

var errTooLarge = errors.New("the compiled scenario has more than 64 MiB")

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxCompiledBytes {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// previewer previews one scenario.
type previewer struct {
	ctx   context.Context
	maps  *Maps
	spec  v1alpha1.ScenarioSpec
	open  compile.Open
	query PreviewQuery
}

func (p *previewer) preview() (*ScenarioPreview, error) {
	prepared, err := p.prepared()
	if err != nil {
		return nil, p.refused(err)
	}
	var out limitedBuffer
	s, result, err := prepared.At(p.ctx, p.moments(prepared.Duration()), &out)
	if err != nil {
		return nil, p.refused(err)
	}
	made := &ScenarioPreview{DurationSeconds: s.Duration().Seconds(), Platforms: []PreviewPlatform{}, Pathloss: s.HasPathloss(), LimitDecibels: cmp.Or(p.query.LimitDB, scenario.DefaultPathlossLimitDB),
		AtSeconds: min(p.query.At, s.Duration()).Seconds(), Links: []PlatformLink{}, Hops: []HopsAt{}, Between: []LossAt{}}
	made.Warnings = append(append([]string{}, result.Statistics.UnknownSentences...), result.Warnings...)
	for _, add := range []func(*scenario.Scenario, *ScenarioPreview) error{p.tracks, p.links, p.hops, p.between, p.terrain} {
		if err := add(s, made); err != nil {
			return nil, errorOf(err)
		}
	}
	return made, nil
}

// prepared scenario of the spec and its files, unless it is kept.
func (p *previewer) prepared() (*compile.Prepared, error) {
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	if kept, known := p.maps.previews.get(key); known {
		return kept, nil
	}
	var out limitedBuffer
	limited := compile.Limited(p.open, maxSourceBytes, "vignette scenario inspect reads larger ones")
	made, err := compile.Prepare(p.ctx, p.spec, limited, &out)
	if err != nil {
		return nil, err
	}
	p.maps.previews.put(key, made)
	p.maps.previews.trim(maxKeptPreviewBytes, func(p *compile.Prepared) int64 { return p.Bytes() })
	return made, nil
}

// key of the spec and the content of its files. The sender has sent both, so the cache shows nobody another's content.
func (p *previewer) key() (string, error) {
	hash := sha256.New()
	spec := p.spec
	spec.Description = ""
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	hash.Write(text)
	for _, file := range spec.FilesAndTables() {
		content, err := p.open(file)
		if err != nil {
			return "", fmt.Errorf("%s/%s: %w", file.ConfigMap, file.Key, err)
		}
		own := sha256.Sum256(content)
		hash.Write(own[:])
	}
	return digests.Of(hash), nil
}

// moments at which the pathloss is asked for.
func (p *previewer) moments(duration time.Duration) compile.Moments {
	wanted := compile.Moments{All: append(regular(duration, hopMoments), min(p.query.At, duration)), Pair: [2]int{p.query.From, p.query.To}}
	slices.Sort(wanted.All)
	if p.query.From != 0 || p.query.To != 0 {
		wanted.OfPair = regular(duration, lossMoments)
	}
	return wanted
}

// regular moments from 0 to the end of a duration, at least a second apart.
func regular(duration time.Duration, count int) (moments []time.Duration) {
	step := stepOf(duration, count)
	for at := time.Duration(0); at < duration; at += step {
		moments = append(moments, at)
	}
	return append(moments, duration)
}

func stepOf(duration time.Duration, count int) time.Duration {
	return max(duration/time.Duration(count-1), time.Second)
}

// refused scenario: a compilation's error for the page.
func (p *previewer) refused(err error) error {
	if errors.Is(err, errTooLarge) {
		return errorf(http.StatusUnprocessableEntity, "%v: preview fewer platforms or a shorter duration", errTooLarge)
	}
	return errorOf(err)
}

func (p *previewer) tracks(s *scenario.Scenario, made *ScenarioPreview) error {
	tracks, err := tracksOf(p.ctx, s, s.Duration())
	for _, platform := range s.Platforms() {
		one := PreviewPlatform{Number: platform, Track: []Point{}}
		if i := slices.IndexFunc(tracks, func(t track) bool { return t.platform == platform && len(t.points) > 0 }); i >= 0 {
			one.Track = tracks[i].points
		}
		made.Platforms = append(made.Platforms, one)
	}
	return err
}

// links at the wanted moment, the strongest ones.
func (p *previewer) links(s *scenario.Scenario, made *ScenarioPreview) error {
	cursor := s.NewCursor()
	if err := cursor.Seek(min(p.query.At, s.Duration())); err != nil {
		return errorOf(err)
	}
	for i, from := range s.Platforms() {
		for j, to := range s.Platforms() {
			if dB, known := cursor.Pathloss(i, j); known && dB <= made.LimitDecibels {
				made.Links = append(made.Links, PlatformLink{from, to, dB})
			}
		}
	}
	if made.LeftOut = max(len(made.Links)-maxLinks, 0); made.LeftOut > 0 {
		slices.SortStableFunc(made.Links, func(a, b PlatformLink) int { return cmp.Compare(a.Pathloss, b.Pathloss) })
		made.Links = made.Links[:maxLinks]
	}
	return nil
}

// hops over time, by the table of vignette scenario inspect.
func (p *previewer) hops(s *scenario.Scenario, made *ScenarioPreview) error {
	if !s.HasPathloss() {
		return nil
	}
	line, err := s.Timeline(p.ctx, stepOf(s.Duration(), hopMoments), made.LimitDecibels)
	for _, at := range line {
		made.Hops = append(made.Hops, HopsAt{at.At.Seconds(), at.Hops, round(at.MeanHops(), 1e3), len(at.Components)})
	}
	return err
}

// between two platforms over time.
func (p *previewer) between(s *scenario.Scenario, made *ScenarioPreview) error {
	if p.query.From == 0 && p.query.To == 0 {
		return nil
	}
	from, known := s.Index(p.query.From)
	to, also := s.Index(p.query.To)
	if !known || !also || from == to {
		return errorf(http.StatusBadRequest, "from %d and to %d: want two platforms of the scenario, which has %s", p.query.From, p.query.To, v1alpha1.PlatformRanges(s.Platforms()))
	}
	made.Pair = &[2]int32{int32(p.query.From), int32(p.query.To)} //nolint:gosec // they are platforms of the scenario
	cursor := s.NewCursor()
	for _, at := range regular(s.Duration(), lossMoments) {
		if err := cmp.Or(p.ctx.Err(), cursor.Seek(at)); err != nil {
			return err
		}
		one := LossAt{AtSeconds: at.Seconds()}
		if dB, known := cursor.Pathloss(from, to); known {
			one.Pathloss = &dB
		}
		made.Between = append(made.Between, one)
	}
	return nil
}

func (p *previewer) terrain(_ *scenario.Scenario, made *ScenarioPreview) error {
	ground, err := groundOf(&p.spec, p.open)
	if err != nil || ground == nil {
		return err
	}
	tracks := make([][]Point, len(made.Platforms))
	for i := range made.Platforms {
		tracks[i] = made.Platforms[i].Track
	}
	made.Terrain = gridOf(p.ctx, ground, tracks)
	return nil
}
