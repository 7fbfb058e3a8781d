package cli

import (
	"math"
	"strconv"

	"vignette.dev/vignette/internal/confidence"
)

// campaignSchema is the version of the JSON form. It grows if a program of the previous version would misread it.
const campaignSchema = 2

// roundDocument is the results of a round as JSON.
type roundDocument struct {
	SchemaVersion   int             `json:"schemaVersion"`
	Campaign        string          `json:"campaign"`
	Namespace       string          `json:"namespace"`
	UID             string          `json:"uid"`
	Round           int64           `json:"round"`
	Phase           string          `json:"phase,omitempty"`
	ConfidenceLevel float64         `json:"confidenceLevel"`
	Axes            []string        `json:"axes"`
	Points          []pointDocument `json:"points"`
	Runs            []runDocument   `json:"runs"`
}

type pointDocument struct {
	Name               string            `json:"name"`
	Levels             map[string]string `json:"levels"`
	Runs               int               `json:"runs"`
	Measured           int               `json:"measured"`
	EarlierSpec        int               `json:"earlierSpec"`
	Failed             int               `json:"failed"`
	Skipped            int               `json:"skipped"`
	DeliveredPercent   *estimateDocument `json:"deliveredPercent"`
	MedianDelaySeconds *estimateDocument `json:"medianDelaySeconds"`
	MeanDelaySeconds   *estimateDocument `json:"meanDelaySeconds"`
	// ReceiptPercent and MeanResponseSeconds are of requests; null if there were none.
	ReceiptPercent      *estimateDocument `json:"receiptPercent"`
	MeanResponseSeconds *estimateDocument `json:"meanResponseSeconds"`
	Warnings            int               `json:"warnings"`
	Gaps                int               `json:"gaps"`
	Late                int               `json:"late"`
}

// estimateDocument of a mean; halfWidth is null if fewer than two runs were measured.
type estimateDocument struct {
	Mean      float64  `json:"mean"`
	HalfWidth *float64 `json:"halfWidth"`
	N         int      `json:"n"`
}

type runDocument struct {
	Experiment          string            `json:"experiment"`
	UID                 string            `json:"uid,omitempty"`
	Point               string            `json:"point"`
	Levels              map[string]string `json:"levels"`
	Repeat              int32             `json:"repeat,omitempty"`
	Seed                int64             `json:"seed,omitempty"`
	Phase               string            `json:"phase"`
	Message             string            `json:"message,omitempty"`
	TookSeconds         float64           `json:"tookSeconds,omitempty"`
	Messages            *messagesDocument `json:"messages"`
	DeliveredPercent    *float64          `json:"deliveredPercent"`
	MedianDelaySeconds  *float64          `json:"medianDelaySeconds"`
	MeanDelaySeconds    *float64          `json:"meanDelaySeconds"`
	ReceiptPercent      *float64          `json:"receiptPercent"`
	MeanResponseSeconds *float64          `json:"meanResponseSeconds"`
	Warnings            *int              `json:"warnings"`
	Gaps                *int              `json:"gaps"`
	KeptUp              *bool             `json:"keptUp"`
	OffByAtMost         *string           `json:"offByAtMost"`
}

type messagesDocument struct {
	Sent     int64 `json:"sent"`
	Offered  int64 `json:"offered"`
	Expected int64 `json:"expected"`
	Received int64 `json:"received"`
	Lost     int64 `json:"lost"`
}

func (r *round) document() roundDocument {
	d := roundDocument{SchemaVersion: campaignSchema, Campaign: r.campaign, Namespace: r.namespace, UID: r.uid, Round: r.number, Phase: r.phase,
		ConfidenceLevel: confidence.Level, Axes: append([]string{}, r.axes...)}
	for _, p := range r.points() {
		d.Points = append(d.Points, pointDocument{Name: p.first.point, Levels: p.first.levels, Runs: len(p.runs), Measured: len(p.measured), EarlierSpec: p.earlierSpec,
			Failed: p.failed, Skipped: p.skipped, DeliveredPercent: p.delivered.document(), MedianDelaySeconds: p.medianDelay.document(),
			MeanDelaySeconds: p.meanDelay.document(), ReceiptPercent: p.receipts.document(), MeanResponseSeconds: p.meanResponse.document(),
			Warnings: p.warnings, Gaps: p.gaps, Late: p.late})
	}
	for _, run := range r.runs {
		d.Runs = append(d.Runs, run.document())
	}
	return d
}

func (e estimate) document() *estimateDocument {
	if e.n == 0 {
		return nil
	}
	d := &estimateDocument{Mean: e.mean, N: e.n}
	if !math.IsNaN(e.halfWidth) {
		d.HalfWidth = &e.halfWidth
	}
	return d
}

func (run campaignRun) document() runDocument {
	d := runDocument{Experiment: run.name, UID: run.uid, Point: run.point, Levels: run.levels, Repeat: run.repeat, Seed: run.seed, Phase: run.phase,
		Message: run.message, TookSeconds: run.took.Seconds()}
	if f := run.figures; f != nil {
		d.Messages = &messagesDocument{f.sent, f.offered, f.expected, f.received, f.lost}
		d.DeliveredPercent, d.MedianDelaySeconds, d.MeanDelaySeconds = f.deliveredPercent, f.medianDelaySeconds, f.meanDelaySeconds
		d.ReceiptPercent, d.MeanResponseSeconds = f.receiptPercent, f.meanResponseSeconds
		d.Warnings, d.Gaps, d.KeptUp = &f.warnings, &f.gaps, f.keptUp
		if f.offBy != "" {
			d.OffByAtMost = &f.offBy
		}
	}
	return d
}

// pointRecords is a table of points for other programs: plain numbers, and empty cells for unknown figures.
func (r *round) pointRecords() [][]string {
	head := append([]string{"point"}, r.axes...)
	records := [][]string{append(head, "runs", "measured", "failed", "skipped", "delivered_percent_mean", "delivered_percent_half_width",
		"median_delay_seconds_mean", "median_delay_seconds_half_width", "warnings", "gaps", "late", "mean_delay_seconds_mean", "mean_delay_seconds_half_width",
		"receipt_percent_mean", "receipt_percent_half_width", "mean_response_seconds_mean", "mean_response_seconds_half_width", "earlier_spec")}
	for _, p := range r.points() {
		record := append([]string{p.first.point}, r.levelsOf(p.first)...)
		record = append(record, strconv.Itoa(len(p.runs)), strconv.Itoa(len(p.measured)), strconv.Itoa(p.failed), strconv.Itoa(p.skipped))
		record = append(record, plainNumber(p.delivered.mean), plainNumber(p.delivered.halfWidth), plainNumber(p.medianDelay.mean), plainNumber(p.medianDelay.halfWidth))
		record = append(record, strconv.Itoa(p.warnings), strconv.Itoa(p.gaps), strconv.Itoa(p.late))
		for _, e := range []estimate{p.meanDelay, p.receipts, p.meanResponse} {
			record = append(record, plainNumber(e.mean), plainNumber(e.halfWidth))
		}
		records = append(records, append(record, strconv.Itoa(p.earlierSpec)))
	}
	return records
}

func (r *round) runRecords() [][]string {
	head := append([]string{"experiment", "uid", "point"}, r.axes...)
	records := [][]string{append(head, "repeat", "seed", "phase", "sent", "offered", "expected", "received", "lost", "delivered_percent", "median_delay_seconds",
		"warnings", "gaps", "kept_up", "off_by_at_most", "took_seconds", "message", "mean_delay_seconds", "receipt_percent", "mean_response_seconds")}
	for _, run := range r.runs {
		record := append([]string{run.name, run.uid, run.point}, r.levelsOf(run)...)
		record = append(record, strconv.Itoa(int(run.repeat)), strconv.FormatInt(run.seed, 10), run.phase)
		record = append(record, run.figures.record()...)
		records = append(records, append(append(record, plainNumber(run.took.Seconds()), run.message), run.figures.newer()...))
	}
	return records
}

func (f *runFigures) record() []string {
	if f == nil {
		return make([]string, 11)
	}
	record := []string{count(f.sent), count(f.offered), count(f.expected), count(f.received), count(f.lost),
		plainNumberOf(f.deliveredPercent), plainNumberOf(f.medianDelaySeconds), strconv.Itoa(f.warnings), strconv.Itoa(f.gaps), "", f.offBy}
	if f.keptUp != nil {
		record[9] = strconv.FormatBool(*f.keptUp)
	}
	return record
}

// newer figures, whose columns come last, in plain digits; empty if they are unknown.
func (f *runFigures) newer() []string {
	if f == nil {
		return make([]string, 3)
	}
	return []string{plainNumberOf(f.meanDelaySeconds), plainNumberOf(f.receiptPercent), plainNumberOf(f.meanResponseSeconds)}
}

func plainNumberOf(v *float64) string {
	if v == nil {
		return ""
	}
	return plainNumber(*v)
}

// plainNumber has plain digits; empty if it is unknown.
func plainNumber(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
