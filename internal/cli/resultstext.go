package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// resultsText shows the results as tables, in the way of published studies.
func resultsText(r runapi.Results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in namespace %s: %s", r.Experiment, r.Namespace, r.Phase)
	if r.StartTime != nil {
		fmt.Fprintf(&b, ", started %s", r.StartTime.UTC().Format("2006-01-02 15:04:05Z"))
	}
	if r.DurationSeconds > 0 {
		fmt.Fprintf(&b, ", %s s", strconv.FormatFloat(r.DurationSeconds, 'f', 1, 64))
	}
	fmt.Fprintf(&b, "\nrun %s", r.UID)
	if r.RerunOf != "" {
		fmt.Fprintf(&b, ", a rerun of %s", r.RerunOf)
	}
	if r.BasedOn != "" {
		fmt.Fprintf(&b, ", based on %s, whose spec was changed", r.BasedOn)
	}
	b.WriteString("\n\n" + headlineText(r) + "\n")
	b.WriteString(groupsTable(r).String())
	if pairs := pairsTable(r.Pairs); len(pairs) > 2 { // a single pair says what the groups say
		b.WriteString("\n" + pairs.String())
	}
	if len(r.Publishers) > 0 {
		b.WriteString("\n" + publishersTable(r.Publishers).String())
	}
	if requests := requestsTable(&r); len(requests) > 1 {
		b.WriteString("\n" + requests.String())
	}
	if len(r.Bursts) > 0 {
		b.WriteString("\n" + burstsTable(r.Bursts).String())
	}
	if r.Picture != nil {
		b.WriteString("\n" + pictureTable(r.Picture.Groups).String())
	}
	if networks := networksTable(r.Networks); len(networks) > 1 {
		b.WriteString("\n" + networks.String())
	}
	if text := ageLine(r.Age) + surroundingsText(r.Networks); text != "" {
		b.WriteString("\n" + text)
	}
	if len(r.Clocks) > 0 {
		b.WriteString("\n" + clocksTable(r.Clocks).String())
	}
	b.WriteString("\n" + verdictText(&r) + gapsText("Gaps", r.Gaps))
	if len(r.Notes) > 0 {
		b.WriteString(gapsText("Notes", r.Notes))
	}
	return b.String()
}

// headlineText describes the headline group's deliveries, with warnings.
func headlineText(r runapi.Results) string {
	group := r.HeadlineGroup()
	_, offered := group.Messages.Counted()
	text := "Nothing was offered for delivery\n"
	if percent := deliveredPercent(group.Messages.Received, offered); percent != nil {
		between := ""
		if group.Name == "radio" {
			between = " between nodes"
		}
		text = fmt.Sprintf("%d of %d offered deliveries%s arrived (%s %%): %d lost on the way, %d never sent\n", group.Messages.Received, offered, between,
			percentText(*percent), group.Messages.Lost, offered-group.Messages.Expected)
	}
	text += delayLine(group) + sizeLine(r.MessageSizes) + requestLine(group.Requests)
	for _, warning := range r.Warnings {
		text += fmt.Sprintf("WARNING: %s: %s\n", oneLine(warning.What), oneLine(warning.Reason))
	}
	return text
}

// delayLine has the median and mean delay of the headline group with their intervals; empty for older results and few deliveries.
func delayLine(group runapi.GroupResult) string {
	q, known := group.DelaySeconds, group.Confidence
	if q == nil || q.Mean == nil || known == nil || known.MedianSeconds == nil || known.MeanSeconds == nil {
		return ""
	}
	write := func(v float64, i *runapi.Interval) string {
		return fmt.Sprintf("%s (%s to %s)", seconds(v), seconds(i.Low), seconds(i.High))
	}
	return fmt.Sprintf("Median delay %s, mean %s; in parentheses and after ±: %s %% confidence intervals\n", write(q.Median, known.MedianSeconds),
		write(*q.Mean, known.MeanSeconds), strconv.FormatFloat(100*known.Level, 'f', -1, 64))
}

// sizeLine has the median size of messages on the wire by protocol; empty without captures.
func sizeLine(sizes []runapi.MessageSize) string {
	if len(sizes) == 0 {
		return ""
	}
	var parts []string
	for _, s := range sizes {
		parts = append(parts, fmt.Sprintf("%s %s B", s.Protocol, strconv.FormatFloat(s.MedianBytes, 'f', -1, 64)))
	}
	return "Message on the wire, median: " + strings.Join(parts, ", ") + "\n"
}

var figureHeads = []string{"triggered", "sent", "offered", "received", "delivered %", "lost", "never sent", "duplicates", "delay min", "p25", "median", "mean", "p75", "p95", "max"}

func groupsTable(r runapi.Results) table {
	rows := table{figures("GROUP", figureHeads...)}
	groups := r.Groups
	if len(groups) == 0 || groups[0].Name != "all" {
		groups = append([]runapi.GroupResult{{Name: "all", Messages: r.Messages, DelaySeconds: r.DelaySeconds}}, groups...)
	}
	for _, g := range groups {
		rows = append(rows, figures(g.Name, figuresOf(g.Messages, g.DelaySeconds, g.Confidence)...))
	}
	return rows
}

// pairsTable of groups of senders and receivers with offered deliveries.
func pairsTable(pairs []runapi.PairResult) table {
	rows := table{row([]string{"FROM GROUP", "TO GROUP"}, figureHeads...)}
	for _, p := range pairs {
		if _, offered := p.Messages.Counted(); offered > 0 {
			rows = append(rows, row([]string{p.From, p.To}, figuresOf(p.Messages, p.DelaySeconds, p.Confidence)...))
		}
	}
	return rows
}

func publishersTable(publishers []runapi.PublisherResult) table {
	rows := table{figures("PUBLISHER", figureHeads...)}
	for _, p := range publishers {
		rows = append(rows, figures(p.Name, figuresOf(p.Messages, p.DelaySeconds, p.Confidence)...))
	}
	return rows
}

// clocksTable of nodes whose delays are only as accurate as their clocks.
func clocksTable(clocks []runapi.ClockResult) table {
	rows := table{figures("CLOCK OF", "offset at most", "known within")}
	for _, c := range clocks {
		rows = append(rows, figures(c.Node, seconds(c.WorstOffsetSeconds), seconds(c.WorstUncertaintySeconds)))
	}
	return rows
}

func figuresOf(m runapi.Messages, q *runapi.Quantiles, known *runapi.Confidence) []string {
	triggered, offered := m.Counted()
	delivered := "-"
	if percent := deliveredPercent(m.Received, offered); percent != nil {
		delivered = percentText(*percent)
	}
	cells := []string{count(triggered), count(m.Sent), count(offered), count(m.Received), delivered, count(m.Lost), count(offered - m.Expected), count(m.Duplicates)}
	if q == nil {
		return append(cells, "-", "-", "-", "-", "-", "-", "-")
	}
	return append(cells, seconds(q.Min), seconds(q.P25), seconds(q.Median), meanText(q, known), seconds(q.P75), p95Text(q), seconds(q.Max))
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// seconds with three significant digits, in a suitable unit.
func seconds(s float64) string {
	switch magnitude := math.Abs(s); {
	case magnitude < 1e-3:
		return significant(s*1e6) + " µs"
	case magnitude < 1:
		return significant(s*1e3) + " ms"
	}
	return significant(s) + " s"
}

// delayText writes a delay of a status, such as 369.3ms, as results write it.
func delayText(status string) string {
	delay, err := time.ParseDuration(status)
	if err != nil {
		return status
	}
	return seconds(delay.Seconds())
}

func significant(v float64) string {
	decimals := 2
	for limit := 10.0; decimals > 0 && math.Abs(v) >= limit; limit *= 10 {
		decimals--
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

func networksTable(networks []runapi.NetworkResult) table {
	counted := slices.ContainsFunc(networks, func(n runapi.NetworkResult) bool { return n.Frames != nil }) // not in older results
	rows := table{figures("NETWORK", "data volume", "of it routing")}
	if counted {
		rows[0] = slices.Concat(rows[0], right("frames sent", "received"), left("dropped"))
	}
	for _, n := range networks {
		if n.BytesPerSecond == nil {
			continue
		}
		routing := "-"
		if n.RoutingBytesPerSecond != nil {
			routing = size(int64(math.Round(*n.RoutingBytesPerSecond))) + "/s"
		}
		row := figures(n.Name, size(int64(math.Round(*n.BytesPerSecond)))+"/s", routing)
		if counted {
			row = append(row, frameCells(n.Frames)...)
		}
		rows = append(rows, row)
	}
	return rows
}

// ageLine has the age of information; empty for older results.
func ageLine(a *runapi.AgeResult) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("Age of information: mean %s over %d of %d pairs of publisher and subscriber, greatest %s\n",
		seconds(a.MeanSeconds), a.KnownPairs, a.Pairs, seconds(a.MaxSeconds))
}

// surroundingsText has a line for each network's hops, and one for its SINR.
func surroundingsText(networks []runapi.NetworkResult) (text string) {
	for _, n := range networks {
		if h := n.Hops; h != nil && (h.Mean == nil || h.Max == nil) {
			text += fmt.Sprintf("Hops on %s: no node had a route to another one\n", oneLine(n.Name))
		} else if h != nil {
			text += fmt.Sprintf("Hops on %s: mean %.2f, greatest %d; %s %% of all pairs of nodes without a route\n", oneLine(n.Name), *h.Mean, *h.Max, percentText(h.WithoutRoutePercent))
		}
		if s := n.SINRDB; s != nil {
			text += fmt.Sprintf("SINR on %s, median of each link: %.1f dB in the middle, %.1f to %.1f dB for 90 %% of %d links\n", oneLine(n.Name), s.Median, s.P5, s.P95, s.Links)
		}
	}
	return text
}

func frameCells(f *runapi.NetworkFrames) []cell {
	if f == nil {
		return append(right("-", "-"), left("-")...)
	}
	return append(right(count(f.Sent), count(f.Received)), left(byReason(f.Drops))...)
}

// size in bytes, kB, MB or GB of a thousand each.
func size(bytes int64) string {
	v := float64(bytes)
	for _, unit := range []string{"B", "kB", "MB"} {
		if v < 1000 {
			if unit == "B" {
				return fmt.Sprintf("%d B", bytes)
			}
			return significant(v) + " " + unit
		}
		v /= 1000
	}
	return significant(v) + " GB"
}

func gapsText(what string, gaps []runapi.Gap) string {
	if len(gaps) == 0 {
		return what + ": none\n"
	}
	text := fmt.Sprintf("%s: %d\n", what, len(gaps))
	for _, g := range gaps {
		where := g.What
		if g.Node != "" {
			where += " of " + g.Node
		}
		if g.FromSeconds != nil || g.ToSeconds != nil {
			where += " at " + interval(g.FromSeconds, g.ToSeconds)
		}
		text += fmt.Sprintf("  %s: %s\n", oneLine(where), oneLine(g.Reason))
	}
	return text
}

// interval after T0; an unknown end is left open.
func interval(from, to *float64) string {
	text := "…"
	if from != nil {
		text = strconv.FormatFloat(*from, 'f', 1, 64)
	}
	if to != nil {
		return text + "–" + strconv.FormatFloat(*to, 'f', 1, 64) + " s"
	}
	return text + " s on"
}
