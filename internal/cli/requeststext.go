package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
)

var requestHeads = []string{"requests", "sent", "receipts", "receipts %", "failed", "outstanding", "retransmissions", "response min", "p25", "median", "mean", "p75", "p95", "max"}

// requestsTable has a row for each group, pair of groups and publisher with requests.
func requestsTable(r *runapi.Results) table {
	rows := table{figures("REQUESTS OF", requestHeads...)}
	add := func(name string, q *runapi.RequestResults) {
		if q != nil {
			rows = append(rows, figures(name, requestFigures(q)...))
		}
	}
	for _, g := range r.Groups {
		add(g.Name, g.Requests)
	}
	for _, p := range r.Pairs {
		if len(r.Pairs) > 1 {
			add(p.From+" to "+p.To, p.Requests)
		}
	}
	for _, p := range r.Publishers {
		add(p.Name, p.Requests)
	}
	return rows
}

func requestFigures(q *runapi.RequestResults) []string {
	cells := []string{count(q.Triggered), count(q.Sent), count(q.Receipts), percentText(q.ReceiptPercent), byReason(q.Failed), count(q.Outstanding), retransmissionsText(q.Retransmissions)}
	t := q.ResponseSeconds
	if t == nil {
		return append(cells, "-", "-", "-", "-", "-", "-", "-")
	}
	return append(cells, seconds(t.Min), seconds(t.P25), seconds(t.Median), meanText(t, meanOf(q)), seconds(t.P75), p95Text(t), seconds(t.Max))
}

// retransmissionsText is a dash where TCP alone may have repeated requests.
func retransmissionsText(n *int64) string {
	if n == nil {
		return "-"
	}
	return count(*n)
}

// byReason counts what failed or was dropped, such as "3 (2 timeout, 1 refused)", the most frequent reason first.
func byReason(failed map[string]int64) string {
	var total int64
	reasons := slices.SortedFunc(maps.Keys(failed), func(a, b string) int { return cmp.Or(cmp.Compare(failed[b], failed[a]), cmp.Compare(a, b)) })
	said := make([]string, len(reasons))
	for i, reason := range reasons {
		total += failed[reason]
		said[i] = fmt.Sprintf("%d %s", failed[reason], reason)
	}
	if len(said) == 0 {
		return "0"
	}
	if len(said) == 1 {
		return oneLine(said[0])
	}
	return fmt.Sprintf("%d (%s)", total, oneLine(strings.Join(said, ", ")))
}

// meanText has the mean of times and half its confidence interval, the wider side; a dash in older results.
func meanText(q *runapi.Quantiles, known *runapi.Confidence) string {
	if q.Mean == nil {
		return "-"
	}
	e := estimate{n: 1, mean: *q.Mean, halfWidth: math.NaN()}
	if known != nil && known.MeanSeconds != nil {
		e.halfWidth = max(known.MeanSeconds.High-e.mean, e.mean-known.MeanSeconds.Low)
	}
	return e.text(seconds)
}

// p95Text has the 95th percentile of times; a dash in older results.
func p95Text(q *runapi.Quantiles) string {
	if q.P95 == nil {
		return "-"
	}
	return seconds(*q.P95)
}

// requestLine says what became of the headline group's requests; empty without requests.
func requestLine(q *runapi.RequestResults) string {
	if q == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d requests have a receipt (%s %%); failed: %s; outstanding: %d", q.Receipts, q.Triggered, percentText(q.ReceiptPercent), byReason(q.Failed), q.Outstanding)
	if t := q.ResponseSeconds; t != nil {
		text += fmt.Sprintf("; median response time %s, mean %s", seconds(t.Median), meanText(t, meanOf(q)))
	}
	return text + "\n"
}

// meanOf has the interval of the mean response time.
func meanOf(q *runapi.RequestResults) *runapi.Confidence {
	if q.Confidence == nil {
		return nil
	}
	return &runapi.Confidence{MeanSeconds: q.Confidence.MeanSeconds}
}
