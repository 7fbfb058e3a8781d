package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/units"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// fileOptions describe the files of a scenario, and how their tracks become platforms.
type fileOptions struct {
	format, align, start, speed, origin, unit, yAxis string
	duration                                         time.Duration
	antennaProfiles                                  string
}

func (o *fileOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.format, "format", "", "`format` of the files: "+wording.Or(compile.FormatNames())+" (default: by their names)")
	flags.StringVar(&o.align, "align", "", "`what` begins at the scenario's start: Sources, each file; Tracks, each track; AsDated, as the times say (the default)")
	flags.StringVar(&o.start, "start", "", "`date` of the scenario's start, for files with dates, such as 2026-01-31T12:00:00Z")
	flags.StringVar(&o.speed, "speed", "", "`speed` at which tracks without times are followed, such as 1.4m/s, 50km/h or 12kn")
	flags.DurationVar(&o.duration, "duration", 0, "`time` that each track without times takes, instead of a speed")
	flags.StringVar(&o.origin, "origin", "", "`place` of the coordinates 0, 0 of ns2, and of sumo without geo: latitude,longitude[,altitude], such as 58.19,7.98,20m")
	flags.StringVar(&o.unit, "unit", "", "`length` of one unit of these coordinates, such as 1.5m (default 1m)")
	flags.StringVar(&o.yAxis, "y-axis", "", "`direction` in which their y grows: North (the default), or South as on CORE's canvas")
	flags.StringVar(&o.antennaProfiles, "antenna-profiles", "", "`manifest` of EMANE's antenna profiles for an event log; its patterns lie beside it")
	complete(cmd, "antenna-profiles", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"xml"}, cobra.ShellCompDirectiveFilterFileExt
	})
	complete(cmd, "format", completeFormat)
	complete(cmd, "align", cobra.FixedCompletions([]string{"AsDated", "Sources", "Tracks"}, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "y-axis", cobra.FixedCompletions([]string{"North", "South"}, cobra.ShellCompDirectiveNoFileComp))
	noCompletion(cmd, "start", "speed", "duration", "origin", "unit")
}

// tracks as in a Scenario; nil without any flag.
func (o *fileOptions) tracks() (*v1alpha1.ScenarioTracks, error) {
	if *o == (fileOptions{format: o.format, antennaProfiles: o.antennaProfiles}) {
		return nil, nil
	}
	t := &v1alpha1.ScenarioTracks{Speed: v1alpha1.Speed(o.speed), Unit: v1alpha1.Metres(o.unit)}
	align, known := oneOf(o.align, "AsDated", "Sources", "Tracks")
	if !known {
		return nil, fmt.Errorf("--align %s: want AsDated, Sources or Tracks", o.align)
	}
	t.Align = v1alpha1.TrackAlignment(align)
	if t.YAxis, known = oneOf(o.yAxis, "North", "South"); !known {
		return nil, fmt.Errorf("--y-axis %s: want North or South", o.yAxis)
	}
	if o.start != "" {
		start, err := time.Parse(time.RFC3339, o.start)
		if err != nil {
			return nil, fmt.Errorf("--start %s: want a date such as 2026-01-31T12:00:00Z", o.start)
		}
		t.Start = &metav1.Time{Time: start}
	}
	if o.duration < 0 {
		return nil, fmt.Errorf("--duration %s: want a time above zero, such as 10m", o.duration)
	}
	if o.duration > 0 {
		t.Duration = v1alpha1.Duration(o.duration.String())
	}
	return t, o.quantities(t)
}

// oneOf the words, in any case of letters; nothing means the first one.
func oneOf(text string, words ...string) (word string, known bool) {
	if text == "" {
		return words[0], true
	}
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, text) })
	if i < 0 {
		return "", false
	}
	return words[i], true
}

// quantities with their units.
func (o *fileOptions) quantities(t *v1alpha1.ScenarioTracks) error {
	if _, err := units.ParseSpeed(o.speed); o.speed != "" && err != nil {
		return fmt.Errorf("--speed: %w", err)
	}
	if _, err := units.ParseMetres(o.unit); o.unit != "" && err != nil {
		return fmt.Errorf("--unit: %w", err)
	}
	if o.origin == "" {
		return nil
	}
	parts := strings.Split(o.origin, ",")
	if len(parts) != 2 && len(parts) != 3 {
		return fmt.Errorf("--origin %s: want latitude,longitude, such as 58.19,7.98", o.origin)
	}
	for _, part := range parts[:2] {
		if _, err := units.ParseDegrees(part); err != nil {
			return fmt.Errorf("--origin %s: %w", o.origin, err)
		}
	}
	t.Origin = &v1alpha1.Position{Latitude: v1alpha1.Degrees(parts[0]), Longitude: v1alpha1.Degrees(parts[1])}
	if len(parts) == 3 {
		if _, err := units.ParseMetres(parts[2]); err != nil {
			return fmt.Errorf("--origin %s: %w", o.origin, err)
		}
		t.Origin.Altitude = v1alpha1.Metres(parts[2])
	}
	return nil
}
