package matrix

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// maxExperimentName is the longest name of an experiment.
	maxExperimentName = 40
	// digestLength is that of a shortened name. It has 30 bits, so that of 2000 campaigns with 1000 points one has a collision,
	// which is refused.
	digestLength = 6
)

// levelPattern is that of LevelName.
var levelPattern = regexp.MustCompile(`^[A-Za-z0-9._%/:+-]{1,24}$`)

// levelName of a value is its text.
func levelName(raw []byte) (v1alpha1.LevelName, error) {
	var value any
	_ = json.Unmarshal(raw, &value) // null has no text, and is none of the kinds below
	text := string(raw)
	switch v := value.(type) {
	case string:
		text = v
	case float64, bool:
	default:
		return "", fmt.Errorf("only strings, numbers, true and false name a level: give levels with names")
	}
	if !levelPattern.MatchString(text) {
		return "", fmt.Errorf("the name of a level has 1 to 24 letters, digits and ._%%/:+- : give levels with names")
	}
	return v1alpha1.LevelName(text), nil
}

var (
	invalidChars = regexp.MustCompile(`[^a-z0-9]+`)
	negative     = regexp.MustCompile(`(^|[^a-z0-9])-([0-9])`)
)

// sanitize makes a text valid for names of objects. 1% and 1 stay different, and so do -3dB and 3dB.
func sanitize(text string) string {
	text = strings.ReplaceAll(strings.ToLower(text), "%", "pct")
	text = negative.ReplaceAllString(text, "${1}m${2}")
	return strings.Trim(invalidChars.ReplaceAllString(text, "-"), "-")
}

// pointName is a name that is valid as a label's value.
func pointName(full string) string {
	return shorten(sanitize(full), full, validation.LabelValueMaxLength)
}

// shorten shortens a name to a length with a digest.
func shorten(name, of string, most int) string {
	if len(name) <= most {
		return name
	}
	start := strings.TrimRight(name[:max(0, most-digestLength-1)], "-")
	if start == "" {
		return digest(of)
	}
	return start + "-" + digest(of)
}

func digest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:digestLength]
}

// runName is CAMPAIGN[-rROUND]-POINT-REPEAT.
func runName(campaign string, round int64, point *Point, repeat int32) string {
	if round > 0 {
		campaign += fmt.Sprintf("-r%d", round)
	}
	room := maxExperimentName - len(campaign) - len(fmt.Sprintf("--%d", repeat))
	if room < digestLength { // a long name and many digits of the round
		return shorten(campaign+"-"+point.Name, campaign+"/"+point.full, maxExperimentName-len(fmt.Sprintf("-%d", repeat))) + fmt.Sprintf("-%d", repeat)
	}
	return fmt.Sprintf("%s-%s-%d", campaign, shorten(point.Name, point.full, room), repeat)
}

// Rename renames a run whose name a run of another point has already, because the order of axes was changed.
func (r *Run) Rename(campaign string, round int64) {
	key := Key(r.Point.Name, r.Point.Levels, r.Point.Included)
	other := &Point{Name: r.Point.Name + "-" + digest(key), full: r.Point.full + " " + key}
	r.Name = runName(campaign, round, other, r.Repeat)
}

// RetryName is the name of a run's next try, after that of its retry number retry.
func RetryName(name string, retry int32) string {
	suffix := fmt.Sprintf("-try%d", retry+2)
	name = strings.TrimSuffix(name, fmt.Sprintf("-try%d", retry+1))
	return shorten(name, name, maxExperimentName-len(suffix)) + suffix
}

// Key identifies a point independently of the order of the axes.
func Key(point string, levels map[string]v1alpha1.LevelName, included bool) string {
	if included || len(levels) == 0 {
		return "+" + point
	}
	var b strings.Builder
	for _, axis := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&b, "%s=%s ", axis, levels[axis])
	}
	return b.String()
}
