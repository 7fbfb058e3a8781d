package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"vignette.dev/vignette/internal/capacity"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
)

func newCapacity(t *target) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Show free capacity and the admission queue",
		Long: "capacity shows what is free on every host and in total, what is left of each team's quotas, and the admission queue in\n" +
			"order, with the reason why each experiment waits, and the namespace's share of the archive.\n" +
			"It shows what you may read, and names what you may not read.",
		Example: "  vignette capacity\n" +
			"  vignette capacity -o json | jq .queue",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			seen, err := c.readCapacity(cmd.Context(), t.explainArchive)
			if err != nil {
				return err
			}
			report := capacity.Of(seen)
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), report)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), capacityText(report, time.Now()))
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	addOutput(cmd, &output)
	return cmd
}

func (c *cluster) readCapacity(ctx context.Context, explain func(error) error) (capacity.State, error) {
	return capacity.Reader{Kube: c.kube, Archive: c.archive, Namespace: c.namespace, Explain: explain}.Read(ctx)
}

func capacityText(r capacity.Report, now time.Time) string {
	parts := []string{}
	if len(r.Hosts) > 0 {
		hosts := table{figures("HOST", "CPU FREE", "OF", "MEMORY FREE", "OF", "PODS FREE", "OF")}
		for _, h := range r.Hosts {
			hosts = append(hosts, hostRow(&h))
		}
		if len(r.Hosts) > 1 {
			hosts = append(hosts, hostRow(r.All))
		}
		parts = append(parts, hosts.String()+keptText(r.KeptForWorkflows))
	}
	if len(r.Teams) > 0 {
		teams := table{append(figures("TEAM", "RUNNING", "QUEUED"), append(left("QUOTA", "RESOURCE"), figures("FREE", "USED", "HARD")...)...)}
		for _, t := range r.Teams {
			teams = append(teams, teamRows(&t)...)
		}
		parts = append(parts, teams.String())
	}
	if len(r.Queue) > 0 {
		parts = append(parts, queueTable(r, now))
	} else {
		parts = append(parts, r.EmptyQueueText+"\n")
	}
	if r.Archive != nil {
		parts = append(parts, archiveText(r.Archive))
	} else if r.ArchiveProblem != "" {
		parts = append(parts, "The team's part of the archive is not known: "+r.ArchiveProblem+"\n")
	}
	if len(r.NotShown) > 0 {
		parts = append(parts, "Not shown, because you may not read it: "+strings.Join(r.NotShown, "; ")+".\n")
	}
	return strings.Join(parts, "\n")
}

// keptText says how much of the free room is for workflows; empty if none is.
func keptText(kept *capacity.Amounts) string {
	if kept == nil {
		return ""
	}
	amounts := amountTexts(*kept)
	return fmt.Sprintf("Of what is free, kept for workflows of running experiments: CPU %s, memory %s, pods %s.\n", amounts[0], amounts[1], amounts[2])
}

// archiveText describes a team's share of the archive, its quota and its retention, and the volume if that has less room.
func archiveText(u *runapi.Usage) string {
	text := fmt.Sprintf("Archive of %s: %s with %s", u.Namespace, countRuns(u.Runs), wording.Bytes(u.Bytes))
	if u.QuotaBytes > 0 {
		text += " of " + wording.Bytes(u.QuotaBytes)
	}
	if u.RetentionSeconds > 0 {
		text += ", each kept for " + duration.HumanDuration(time.Duration(u.RetentionSeconds*float64(time.Second))) + " after it ended"
	}
	if u.QuotaBytes > 0 && u.Bytes >= u.QuotaBytes {
		text += ". No run begins before some are deleted: vignette runs list"
	}
	if u.FreeBytes != nil && (u.QuotaBytes == 0 || *u.FreeBytes < u.QuotaBytes-u.Bytes) {
		text += ". The archive's volume has room for " + wording.Bytes(*u.FreeBytes) + " of logs of all teams"
	}
	return text + ".\n"
}

func hostRow(h *capacity.Host) []cell {
	name, free := h.Name, []string{"?", "?", "?"}
	if !h.Usable {
		name += " (takes no pods)"
	}
	if h.Free != nil {
		free = amountTexts(*h.Free)
	}
	all := amountTexts(h.Allocatable)
	return figures(name, free[0], all[0], free[1], all[1], free[2], all[2])
}

func amountTexts(r capacity.Amounts) []string {
	return []string{
		strconv.FormatFloat(r.CPU, 'f', 2, 64), wording.Bytes(r.MemoryBytes), strconv.FormatInt(r.Pods, 10),
	}
}

func teamRows(t *capacity.Team) (rows table) {
	head := func() []cell { return figures(t.Namespace, strconv.Itoa(t.Running), strconv.Itoa(t.Queued)) }
	for i, q := range t.Quotas {
		first := figures("", "", "")
		if i == 0 {
			first = head()
		}
		amounts := figures(readableAmount(q.Resource, q.Free), readableAmount(q.Resource, q.Used), readableAmount(q.Resource, q.Hard))
		amounts[0].right = true
		rows = append(rows, append(first, append(left(q.Name, q.Resource), amounts...)...))
	}
	if t.Quotas == nil {
		rows = append(rows, append(head(), left("?")...))
	} else if len(rows) == 0 {
		rows = append(rows, append(head(), left("none")...))
	}
	return rows
}

// readableAmount writes amounts of memory and storage in units for people.
func readableAmount(name, value string) string {
	quantity, err := resource.ParseQuantity(value)
	if err != nil || !strings.HasSuffix(name, "memory") && !strings.HasSuffix(name, "storage") {
		return value
	}
	return wording.Bytes(quantity.Value())
}

func queueTable(r capacity.Report, now time.Time) string {
	rows := table{append(figures("QUEUE"), left("EXPERIMENT", "PRIORITY", "NODES", "WAITED", "EXPECTED", "REASON", "MESSAGE")...)}
	for _, e := range r.Queue {
		place, expected := "-", "-"
		if e.Position > 0 {
			place = strconv.Itoa(int(e.Position))
		}
		if e.Position > 10 && r.PositionsRounded {
			place = "≤ " + place
		}
		if e.QueueName != "" {
			place = "Kueue " + e.QueueName
		}
		if e.ExpectedStart != nil {
			expected = "in " + duration.HumanDuration(max(e.ExpectedStart.Sub(now), 0))
		}
		cells := left(e.Namespace+"/"+e.Name, strconv.Itoa(int(e.Priority)), strconv.Itoa(int(e.Nodes)), ageText(e.Since, now), expected, e.Reason, oneLine(e.Message))
		rows = append(rows, append(left(place), cells...))
	}
	return rows.String()
}
