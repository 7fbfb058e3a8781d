package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
)

// shownLate moments of a verdict are in the table.
const shownLate = 5

// verdictText shows whether the emulation kept up, and how far figures may be off.
func verdictText(r *runapi.Results) string {
	v := r.Verdict
	if v == nil {
		return "Emulation kept up: unknown\n"
	}
	text, separator := "Emulation kept up: yes", "; "
	if !v.KeptUp {
		text = "Emulation kept up: NO, " + cmp.Or(strings.Join(v.Exceeded, "; "), "so losses and delays may be those of an overloaded machine")
		separator = "\n  "
	}
	if off := r.HeadlineBounds().String(); off != "" {
		text += separator + "figures are off by at most " + off
	}
	text += "\n"
	for _, n := range v.Networks {
		text += fmt.Sprintf("  network %s: %d of %d frames released late, %d lost by the emulation", n.Name, n.Late, n.Frames, n.Lost)
		if n.Slots+n.Missed > 0 {
			text += fmt.Sprintf(", %d of %d time slots missed", n.Missed, n.Slots+n.Missed)
		}
		text += "\n"
	}
	return text + momentsText(v.Late) + contextText(v.Context)
}

// momentsText has losses first, which have no lateness, then what was late most.
func momentsText(moments []runapi.Late) (text string) {
	worst := slices.SortedStableFunc(slices.Values(moments), func(a, b runapi.Late) int { return cmp.Compare(worstOrder(b), worstOrder(a)) })
	for i, late := range worst {
		if i == shownLate {
			return text + fmt.Sprintf("  and %d more; -o json has the worst %d\n", len(worst)-i, runapi.MaxLate)
		}
		at := interval(&late.FromSeconds, &late.ToSeconds)
		text += fmt.Sprintf("  %s: %s", strings.TrimSpace(late.Node+" at "+at), late.What)
		if late.WorstSeconds > 0 {
			text += fmt.Sprintf(", %s late at worst", seconds(late.WorstSeconds))
		}
		text += "\n"
	}
	return text
}

func worstOrder(late runapi.Late) float64 {
	if late.WorstSeconds == 0 {
		return math.Inf(1)
	}
	return late.WorstSeconds
}

func contextText(sentences []string) (text string) {
	for _, sentence := range sentences {
		text += "  " + oneLine(sentence) + "\n"
	}
	return text
}
