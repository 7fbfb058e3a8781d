package cli

import (
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func newCampaignStatus(t *target) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "status NAME", Short: "Show the progress of a campaign", Args: oneArgument(nameOfCampaign), ValidArgsFunction: t.completeCampaign,
		Long: "status shows a campaign in detail: how many of its points and runs are done, which are under way, which failed\n" +
			"and why, how long it will take, when the next round begins. With --watch it shows the progress of points and runs, with\n" +
			"figures as they come, until the campaign ends; exit code 1 if it failed or is refused. Ctrl-C ends the watching only.",
		Example: "  vignette campaign status e4-s1\n" +
			"  vignette campaign status e4-s1 --watch",
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			camp, err := c.campaign(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if follow {
				return c.watchStatus(cmd.Context(), c.watchedCampaign(camp), manyInterval, cmd.OutOrStdout())
			}
			_, err = io.WriteString(cmd.OutOrStdout(), campaignDescription(camp, time.Now()))
			return err
		}),
	}
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "show the progress of points and runs until the end")
	return cmd
}

// campaignDescription describes one campaign in detail.
func campaignDescription(camp *v1alpha1.Campaign, now time.Time) string {
	s := &camp.Status
	rows := table{left("Campaign", camp.Namespace+"/"+camp.Name), left("UID", string(camp.UID)), left("Phase", campaignPhase(camp))}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, left(name, oneLine(value)))
		}
	}
	add("Message", s.Message)
	if s.Round > 0 {
		add("Round", roundText(s))
		add("Points", pointsOf(s.Runs).String())
		add("Runs", runCounts(s.Counts))
	}
	if rest := timeLeft(camp, now); rest != "" {
		add("Time left", fmt.Sprintf("about %s, until %s", rest, utc(s.EstimatedCompletionTime.Time)))
	}
	add("Next round", nextRound(camp, now))
	if c := s.Comparison; c != nil {
		add("Compared", comparisonText(camp, c))
	}
	text := rows.String()
	if runs := notableRuns(s.Runs, now); len(runs) > 1 {
		text += "\n" + runs.String()
	}
	if rounds := roundsTable(s.Rounds); len(rounds) > 1 {
		text += "\n" + rounds.String()
	}
	return text + conditionsText(s.Conditions, s.Message)
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func roundText(s *v1alpha1.CampaignStatus) string {
	text := count(s.Round)
	if s.RoundStartTime != nil {
		text += ", since " + utc(s.RoundStartTime.Time)
	}
	if s.RoundStartTime != nil && s.RoundCompletionTime != nil {
		text = fmt.Sprintf("%d, from %s, took %s", s.Round, utc(s.RoundStartTime.Time), clock(s.RoundCompletionTime.Sub(s.RoundStartTime.Time)))
	}
	return text
}

func runCounts(c v1alpha1.RunCounts) string {
	return fmt.Sprintf("%d of %d done: %d succeeded, %d failed, %d skipped; %d running, %d pending",
		c.Succeeded+c.Failed+c.Skipped, c.Total, c.Succeeded, c.Failed, c.Skipped, c.Running, c.Pending)
}

// pointCounts of a round. A point is done when all of its runs are; it failed if any of them did, and runs while any of them does.
type pointCounts struct{ total, done, failed, running int }

func (p pointCounts) String() string {
	if p.total == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d done, %d of them with failed runs; %d running", p.done, p.total, p.failed, p.running)
}

func pointsOf(runs []v1alpha1.CampaignRun) (counts pointCounts) {
	type point struct{ open, failed, running bool }
	points := map[string]point{}
	for _, run := range runs {
		p := points[run.Point]
		switch run.Phase {
		case v1alpha1.RunFailed, v1alpha1.RunLost:
			p.failed = true
		case v1alpha1.RunSucceeded, v1alpha1.RunSkipped:
		case v1alpha1.RunPending:
			p.open = true
		default:
			p.open, p.running = true, true
		}
		points[run.Point] = p
	}
	for p := range maps.Values(points) {
		counts.total++
		if !p.open {
			counts.done++
			if p.failed {
				counts.failed++
			}
		}
		if p.running {
			counts.running++
		}
	}
	return counts
}

// nextRound in the time zone of the schedule.
func nextRound(camp *v1alpha1.Campaign, now time.Time) string {
	next, schedule := camp.Status.NextScheduleTime, camp.Spec.Schedule
	if next == nil || schedule == nil {
		return ""
	}
	at := utc(next.Time)
	if zone, err := time.LoadLocation(schedule.TimeZone); err == nil && schedule.TimeZone != "" {
		at = next.In(zone).Format("2006-01-02 15:04:05 ") + schedule.TimeZone
	}
	text := fmt.Sprintf("%s, %s (%s)", at, untilText(next.Time, now), schedule.Cron)
	if camp.Spec.Suspend {
		text += ", unless it is still suspended"
	}
	return text
}

func comparisonText(camp *v1alpha1.Campaign, c *v1alpha1.ComparisonStatus) string {
	if c.Message != "" && c.Path == "" {
		return fmt.Sprintf("round %d: %s", c.Round, c.Message)
	}
	return fmt.Sprintf("round %d, %d runs: vignette campaign report -n %s %s --round %[1]d", c.Round, c.Runs, camp.Namespace, camp.Name)
}

// notableRuns are those under way, and those that did not succeed.
func notableRuns(runs []v1alpha1.CampaignRun, now time.Time) table {
	rows := table{left("RUN", "PHASE", "SINCE", "MESSAGE")}
	for _, run := range runs {
		since := ""
		switch run.Phase {
		case v1alpha1.RunPending, v1alpha1.RunSucceeded, v1alpha1.RunSkipped:
			continue
		case v1alpha1.RunFailed, v1alpha1.RunLost:
			if run.CompletionTime != nil {
				since = ageText(run.CompletionTime.Time, now)
			}
		default:
			if run.StartTime != nil {
				since = clock(now.Sub(run.StartTime.Time))
			}
		}
		rows = append(rows, left(run.Name, string(run.Phase), since, oneLine(run.Message)))
	}
	return rows
}

func roundsTable(rounds []v1alpha1.RoundSummary) table {
	rows := table{left("ROUND", "ENDED", "SUCCEEDED", "FAILED", "SKIPPED", "STARTED", "TOOK", "MESSAGE")}
	for _, r := range rounds {
		rows = append(rows, left(count(r.Number), string(r.Phase), count(int64(r.Runs.Succeeded)), count(int64(r.Runs.Failed)), count(int64(r.Runs.Skipped)),
			utc(r.StartTime.Time), clock(r.CompletionTime.Sub(r.StartTime.Time)), oneLine(r.Message)))
	}
	return rows
}
