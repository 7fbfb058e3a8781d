package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// round of a campaign, with what its runs have measured.
type round struct {
	campaign, namespace, uid string
	number                   int64
	// phase of the campaign; empty for an earlier round, or after a deletion.
	phase string
	// axes in the order of the spec; named is set if axes alone do not distinguish points.
	axes  []string
	named bool
	runs  []campaignRun
	// others are runs that --where left out.
	others []campaignRun
}

// campaignRun is one run of a round.
type campaignRun struct {
	name, uid, point string
	// repeat and seed are 0 if only the archive knows the run.
	repeat  int32
	seed    int64
	levels  map[string]string
	phase   string
	message string
	took    time.Duration
	// specDigest is empty if the run has not started, or if only an older record of the archive knows it.
	specDigest string
	figures    *runFigures
}

// runFigures are what a run has measured. Unknown ones are nil.
type runFigures struct {
	triggered, sent, offered, expected, received, lost int64
	deliveredPercent                                   *float64
	medianDelaySeconds                                 *float64
	// These are in results only, not in the status of a run. The last ones are of requests.
	meanDelaySeconds, receiptPercent, meanResponseSeconds *float64
	requests, receipts                                    int64
	gaps, warnings                                        int
	keptUp                                                *bool
	offBy                                                 string
}

// roundOptions select a round of a campaign, and runs of it.
type roundOptions struct {
	round int64
	where []string
}

func (o *roundOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&o.round, "round", 0, "`number` of the round (default: the one under way, or the last)")
	cmd.Flags().StringSliceVar(&o.where, "where", nil, "only points with this `axis=level`; of several of one axis, any")
	noCompletion(cmd, "round", "where")
}

// readRound returns the selected runs of a round. Those of the round under way come from the campaign's status, others, and those
// of a deleted campaign, from the archive.
func (c *cluster) readRound(ctx context.Context, name string, o roundOptions) (*round, error) {
	chosen, err := parsePointFilter(o.where)
	if err != nil {
		return nil, err
	}
	camp, missing := c.campaign(ctx, name)
	if missing != nil && camp != nil {
		return nil, missing
	}
	var r *round
	if camp != nil && (o.round == 0 || o.round == camp.Status.Round) {
		r = currentRound(camp)
	} else if r, err = c.archivedRound(ctx, name, camp, o.round); err != nil {
		return nil, err
	}
	if len(r.runs) == 0 {
		return nil, noRuns(camp, name, o.round, missing)
	}
	if err := r.filterRuns(chosen); err != nil {
		return nil, err
	}
	return r, nil
}

// noRuns explains why a round has no runs.
func noRuns(camp *v1alpha1.Campaign, name string, number int64, missing error) error {
	switch {
	case missing != nil:
		return missing
	case number == 0 || number == camp.Status.Round:
		return fmt.Errorf("campaign %s has no runs yet, it is %s: vignette campaign status -n %s %[1]s", name, campaignPhase(camp), camp.Namespace)
	}
	return fmt.Errorf("--round %d: neither campaign %s nor the archive has a run of it; the newest round is %d", number, name, camp.Status.Round)
}

func currentRound(camp *v1alpha1.Campaign) *round {
	r := &round{campaign: camp.Name, namespace: camp.Namespace, uid: string(camp.UID), number: camp.Status.Round, phase: campaignPhase(camp)}
	for i := range camp.Status.Runs {
		run := &camp.Status.Runs[i]
		made := campaignRun{name: run.Name, uid: string(run.UID), point: run.Point, repeat: run.Repeat, seed: run.Seed, levels: map[string]string{},
			phase: string(run.Phase), message: run.Message, specDigest: run.SpecDigest}
		for axis, level := range run.Levels {
			made.levels[axis] = string(level)
		}
		if run.StartTime != nil && run.CompletionTime != nil {
			made.took = run.CompletionTime.Sub(run.StartTime.Time)
		}
		if run.Results != nil && run.Phase == v1alpha1.RunSucceeded { // a failed run measured only a part
			made.figures = figuresOfStatus(run.Results)
		}
		r.runs = append(r.runs, made)
	}
	r.orderAxes(camp)
	return r
}

func figuresOfStatus(s *v1alpha1.ResultsSummary) *runFigures {
	f := &runFigures{triggered: max(s.Triggered, s.Sent), sent: s.Sent, offered: max(s.Offered, s.Expected), expected: s.Expected, received: s.Received, lost: s.Lost, gaps: int(s.Gaps),
		warnings: int(s.Warnings), keptUp: s.KeptUp, offBy: s.OffByAtMost}
	f.deliveredPercent = deliveredPercent(f.received, f.offered)
	if delay, err := time.ParseDuration(s.MedianDelay); err == nil {
		seconds := delay.Seconds()
		f.medianDelaySeconds = &seconds
	}
	return f
}

func figuresOfResults(r runapi.Results) *runFigures {
	group := r.HeadlineGroup()
	m := group.Messages
	triggered, offered := m.Counted()
	f := &runFigures{triggered: triggered, sent: m.Sent, offered: offered, expected: m.Expected, received: m.Received, lost: m.Lost, gaps: len(r.Gaps), warnings: len(r.Warnings),
		deliveredPercent: deliveredPercent(m.Received, offered)}
	if group.DelaySeconds != nil {
		f.medianDelaySeconds, f.meanDelaySeconds = &group.DelaySeconds.Median, group.DelaySeconds.Mean
	}
	if q := group.Requests; q != nil {
		f.requests, f.receipts, f.receiptPercent = q.Triggered, q.Receipts, &q.ReceiptPercent
		if q.ResponseSeconds != nil {
			f.meanResponseSeconds = q.ResponseSeconds.Mean
		}
	}
	if r.Verdict != nil {
		f.keptUp, f.offBy = &r.Verdict.KeptUp, r.HeadlineBounds().String()
	}
	return f
}

func deliveredPercent(received, offered int64) *float64 {
	if offered == 0 {
		return nil
	}
	percent := 100 * float64(received) / float64(offered)
	return &percent
}

// archivedRound returns the runs of a round in the archive; number 0 is the newest. Of several deleted campaigns of one name it is
// the one with the newest run.
func (c *cluster) archivedRound(ctx context.Context, name string, camp *v1alpha1.Campaign, number int64) (*round, error) {
	archived, err := c.archive.Runs(ctx, c.namespace, "")
	if err != nil {
		return nil, err
	}
	r := &round{campaign: name, namespace: c.namespace, number: number}
	if camp != nil {
		r.uid = string(camp.UID)
	}
	for _, run := range archived {
		of := run.Campaign
		if of == nil || of.Name != name || r.uid != "" && of.UID != r.uid || r.number != 0 && of.Round != r.number {
			continue
		}
		r.uid, r.number = of.UID, of.Round
		r.runs = append(r.runs, campaignRun{name: run.Name, uid: run.UID, point: of.Point, repeat: repeatIn(run.Name, of.Point), levels: of.Levels, phase: string(run.Phase), specDigest: of.SpecDigest})
	}
	slices.SortStableFunc(r.runs, func(a, b campaignRun) int {
		return cmp.Or(strings.Compare(a.point, b.point), cmp.Compare(a.repeat, b.repeat), strings.Compare(a.name, b.name))
	})
	r.orderAxes(camp)
	return r, nil
}

// repeatIn reads the repeat from the name of a run, which ends with the point and the repeat; 0 if it does not.
func repeatIn(name, point string) int32 {
	at := strings.LastIndexByte(name, '-')
	if point == "" || at < 0 {
		return 0
	}
	repeat, err := strconv.ParseInt(name[at+1:], 10, 32)
	if err != nil {
		return 0
	}
	return int32(repeat)
}

// orderAxes in the order of the spec; axes that only runs have, because the spec was edited, come last.
func (r *round) orderAxes(camp *v1alpha1.Campaign) {
	if camp != nil {
		for _, axis := range camp.Spec.Matrix.Axes {
			r.axes = append(r.axes, axis.Name)
		}
	}
	further := map[string]bool{}
	points := map[string]string{}
	for _, run := range r.runs {
		for axis := range run.levels {
			further[axis] = further[axis] || !slices.Contains(r.axes, axis)
		}
	}
	for _, axis := range slices.Sorted(maps.Keys(further)) {
		if further[axis] {
			r.axes = append(r.axes, axis)
		}
	}
	r.named = len(r.axes) == 0
	for _, run := range r.runs {
		key := strings.Join(r.levelsOf(run), "\x00")
		if other, seen := points[key]; seen && other != run.point {
			r.named = true
		}
		points[key] = run.point
	}
}

// levelsOf a run in the order of the axes; a missing level is "-".
func (r *round) levelsOf(run campaignRun) []string {
	levels := make([]string, len(r.axes))
	for i, axis := range r.axes {
		levels[i] = cmp.Or(run.levels[axis], "-")
	}
	return levels
}

// filterRuns keeps the selected runs.
func (r *round) filterRuns(chosen pointFilter) error {
	for axis, levels := range chosen {
		known := map[string]bool{}
		for _, run := range r.runs {
			known[run.levels[axis]] = true
		}
		delete(known, "")
		if len(known) == 0 {
			return fmt.Errorf("--where %[1]s=%[2]s: campaign %[3]s has no axis %[1]s: want one of %[4]s", axis, levels[0], r.campaign, strings.Join(r.axes, ", "))
		}
		for _, level := range levels {
			if !known[level] {
				return fmt.Errorf("--where %s=%s: no run has that level: want one of %s", axis, level, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			}
		}
	}
	all := r.runs
	r.runs = nil
	for _, run := range all {
		if chosen.matches(run.levels) {
			r.runs = append(r.runs, run)
		} else {
			r.others = append(r.others, run)
		}
	}
	if len(r.runs) == 0 {
		return errors.New("--where: no run has all of these levels")
	}
	return nil
}

// archiveReaders read the archive concurrently.
const archiveReaders = 6

// readFigures reads the figures of the runs from their results in the archive, which have more digits than the status. A run whose
// results cannot be read keeps those of the status.
func (c *cluster) readFigures(ctx context.Context, r *round) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(archiveReaders)
	for i := range r.runs {
		run := &r.runs[i]
		if run.uid == "" || run.phase != string(v1alpha1.RunSucceeded) {
			continue
		}
		group.Go(func() error {
			results, err := c.resultsOf(ctx, run.uid)
			if runclient.IsNotFound(err) || err != nil && run.figures != nil {
				return nil
			}
			if err == nil {
				run.figures = figuresOfResults(results)
			}
			return err
		})
	}
	return group.Wait()
}

// isTooMany reports whether the archive refused a request for its rate. A round has more runs than the archive takes requests in a second.
func isTooMany(err error) bool { return runclient.HasStatus(err, http.StatusTooManyRequests) }

// resultsOf a run, from the archive.
func (c *cluster) resultsOf(ctx context.Context, uid string) (results runapi.Results, err error) {
	var content io.ReadCloser
	err = inAttempts(ctx, isTooMany, func(bool) (err error) {
		content, err = c.archive.File(ctx, uid, "results/results.json")
		return err
	})
	if err != nil {
		return results, err
	}
	defer content.Close()
	if err := json.NewDecoder(content).Decode(&results); err != nil {
		return results, fmt.Errorf("results/results.json of run %s: %w", uid, err)
	}
	return results, runapi.CheckVersion("results/results.json of run "+uid, results.SchemaVersion, runapi.ResultsVersion)
}

// pointFilter selects points by the levels of axes, as in --where.
type pointFilter map[string][]string

func parsePointFilter(wishes []string) (pointFilter, error) {
	chosen := pointFilter{}
	for _, wish := range wishes {
		axis, level, found := strings.Cut(wish, "=")
		if !found || axis == "" || level == "" {
			return nil, fmt.Errorf("--where %q: want AXIS=LEVEL, such as link=satcom", wish)
		}
		chosen[axis] = append(chosen[axis], level)
	}
	return chosen, nil
}

func (s pointFilter) matches(levels map[string]string) bool {
	for axis, wanted := range s {
		if !slices.Contains(wanted, levels[axis]) {
			return false
		}
	}
	return true
}
