// Package matrix expands a campaign into its points and runs. It is a pure function of the campaign's spec. The name of a point
// depends only on its own levels, so that a new level does not change the names of others.
package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/fieldpath"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// MaxRuns is the maximum number of runs of a round.
	MaxRuns = 1000
	// maxCombinations is the maximum number of combinations of levels before exclusions.
	maxCombinations = 100_000
	// templatePoint is the name of the only point of a campaign that varies nothing.
	templatePoint = "template"
)

// Point is one combination of levels, or an inclusion.
type Point struct {
	// Name has the sanitized names of its levels joined by hyphens, at most 63 characters.
	Name string
	// Levels by axis. An inclusion has only those that it names.
	Levels map[string]v1alpha1.LevelName
	// Included means that it is an inclusion.
	Included bool
	// Settings are applied to the template in this order.
	Settings []v1alpha1.Setting
	// full is the full name, which Name may shorten.
	full string
}

// Run is one repeat of a point.
type Run struct {
	Point *Point
	// Name of its experiment.
	Name string
	// Repeat from 1.
	Repeat int32
	Seed   int64
}

// Plan is a campaign's matrix, expanded.
type Plan struct {
	Points []*Point
	// Runs in the order in which they start.
	Runs []Run
}

// axis with its levels, also those made from values.
type axis struct {
	name   string
	levels []v1alpha1.Level
	values bool
}

// fieldOf is the field in the campaign of the j-th setting of the axis's i-th level.
func (a *axis) fieldOf(at *field.Path, i, j int) *field.Path {
	if a.values {
		return at.Key(a.name).Child("values").Index(i)
	}
	return at.Key(a.name).Child("levels").Index(i).Child("set").Index(j)
}

// Expand expands a campaign for a round, 0 for a campaign without a schedule. It returns either a plan or the errors of the
// matrix.
func Expand(campaign string, round int64, spec *v1alpha1.CampaignSpec) (*Plan, field.ErrorList) {
	matrix := field.NewPath("spec", "matrix")
	axes, errs := axesOf(spec, matrix.Child("axes"))
	errs = append(errs, checkSelections(spec, axes, matrix)...)
	errs = append(errs, checkMetadata(spec.Template.Metadata)...)
	if len(errs) > 0 {
		return nil, errs
	}
	points := append(combinations(axes, spec.Matrix.Exclude), inclusions(spec.Matrix.Include, axes)...)
	errs = append(errs, checkPoints(points, spec, matrix)...)
	if len(errs) > 0 {
		return nil, errs
	}
	plan := &Plan{Points: points}
	for _, point := range points {
		for repeat := int32(1); repeat <= max(1, spec.Repeats); repeat++ {
			name := runName(campaign, round, point, repeat)
			plan.Runs = append(plan.Runs, Run{Point: point, Name: name, Repeat: repeat, Seed: seedOf(spec, repeat)})
		}
	}
	sortRuns(plan.Runs, spec)
	return plan, checkNames(plan.Runs, matrix)
}

// checkMetadata refuses what Kubernetes takes for no key of a label or an annotation.
func checkMetadata(given v1alpha1.TemplateMetadata) (errs field.ErrorList) {
	refuse := func(list, key string) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "template", "metadata", list), key,
			"the key must be letters, digits, hyphens, dots and underscores, at most 63, with a letter or digit first and last, or such a key after a domain, as in example.org/team"))
	}
	for _, key := range slices.Sorted(maps.Keys(given.Labels)) {
		if len(validation.IsQualifiedName(key)) > 0 {
			refuse("labels", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given.Annotations)) {
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 { // as Kubernetes reads them
			refuse("annotations", key)
		}
	}
	return errs
}

func axesOf(spec *v1alpha1.CampaignSpec, at *field.Path) (axes []axis, errs field.ErrorList) {
	count := 1
	for _, given := range spec.Matrix.Axes {
		made, madeErrs := levelsOf(given, at.Key(given.Name))
		axes, errs = append(axes, axis{given.Name, made, given.Path != ""}), append(errs, madeErrs...)
		count *= max(1, len(made))
		if count > maxCombinations {
			return nil, append(errs, field.Invalid(at, count, fmt.Sprintf("the axes have more than %d combinations of levels", maxCombinations)))
		}
	}
	return axes, append(errs, checkPaths(spec, axes, at)...)
}

func levelsOf(given v1alpha1.Axis, at *field.Path) (levels []v1alpha1.Level, errs field.ErrorList) {
	if given.Path == "" {
		if len(given.Levels) == 0 {
			errs = append(errs, field.Required(at, "an axis needs path and values, or levels"))
		}
		return given.Levels, errs
	}
	if len(given.Values) == 0 {
		return nil, append(errs, field.Required(at.Child("values"), "the values of "+string(given.Path)))
	}
	for i := range given.Values {
		name, err := levelName(given.Values[i].Raw)
		where := at.Child("values").Index(i)
		if err != nil {
			errs = append(errs, field.Invalid(where, strings.Trim(string(given.Values[i].Raw), `"`), err.Error()))
		}
		if err == nil && slices.ContainsFunc(levels, func(l v1alpha1.Level) bool { return l.Name == name }) {
			errs = append(errs, field.Duplicate(where, name))
		}
		levels = append(levels, v1alpha1.Level{Name: name, Set: []v1alpha1.Setting{{Path: given.Path, Value: &given.Values[i]}}})
	}
	return levels, errs
}

// reservedFields are the fields that only the campaign itself sets.
var reservedFields = map[string]string{
	"seed": "give the campaign repeats and seeds, which are the same for every point",
	"stop": "a run that is stopped before it starts measures nothing",
}

// checkPaths refuses invalid paths, and those of an axis that would overwrite the field of another.
func checkPaths(spec *v1alpha1.CampaignSpec, axes []axis, at *field.Path) (errs field.ErrorList) {
	setBy := map[string]string{} // paths, with the axis that sets each
	for _, axis := range axes {
		own := map[string]bool{}
		for i, level := range axis.levels {
			errs = append(errs, checkOrder(level.Set, func(j int) *field.Path { return axis.fieldOf(at, i, j) })...)
			for j, setting := range level.Set {
				errs = append(errs, checkSetting(setting, at.Key(axis.name))...)
				errs = append(errs, checkValue(setting, axis.fieldOf(at, i, j))...)
				own[string(setting.Path)] = true
			}
		}
		for _, path := range slices.Sorted(maps.Keys(own)) {
			for _, earlier := range slices.Sorted(maps.Keys(setBy)) {
				if isWithin(earlier, path) {
					errs = append(errs, field.Invalid(at.Key(axis.name), path, fmt.Sprintf("would undo what axis %s sets: %s", setBy[earlier], earlier)))
				}
			}
		}
		for path := range own {
			setBy[path] = axis.name
		}
	}
	for _, inclusion := range spec.Matrix.Include {
		included := field.NewPath("spec", "matrix", "include").Key(string(inclusion.Name))
		errs = append(errs, checkOrder(inclusion.Set, included.Child("set").Index)...)
		for j, setting := range inclusion.Set {
			errs = append(errs, checkSetting(setting, included)...)
			errs = append(errs, checkValue(setting, included.Child("set").Index(j))...)
		}
	}
	return dedupe(errs)
}

// checkOrder refuses a setting that a later one of the same list would overwrite.
func checkOrder(settings []v1alpha1.Setting, at func(int) *field.Path) (errs field.ErrorList) {
	for j, later := range settings {
		for _, earlier := range settings[:j] {
			if isWithin(string(earlier.Path), string(later.Path)) {
				errs = append(errs, field.Invalid(at(j), later.Path, fmt.Sprintf("would undo what is set before it: %s. Leave out one of the two, or put this first", earlier.Path)))
			}
		}
	}
	return errs
}

// checkValue refuses a value of the wrong type. checkPaths refuses invalid paths.
func checkValue(setting v1alpha1.Setting, at *field.Path) field.ErrorList {
	path, err := fieldpath.Parse(string(setting.Path))
	if err != nil {
		return nil
	}
	value, err := valueOf(setting)
	if err == nil {
		err = fieldpath.Check(fieldpath.Experiment(), path, value)
	}
	if err != nil {
		return field.ErrorList{field.Forbidden(at, err.Error())}
	}
	return nil
}

// isWithin reports whether a path is equal to another or within it.
func isWithin(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func checkSetting(setting v1alpha1.Setting, at *field.Path) field.ErrorList {
	path, err := fieldpath.Parse(string(setting.Path))
	if err != nil {
		return field.ErrorList{field.Invalid(at, setting.Path, err.Error())}
	}
	if why, isOwn := reservedFields[path[0].Name]; isOwn {
		return field.ErrorList{field.Invalid(at, setting.Path, "cannot be varied: "+why)}
	}
	return nil
}

func dedupe(errs field.ErrorList) (distinct field.ErrorList) {
	seen := map[string]bool{}
	for _, err := range errs {
		if !seen[err.Error()] {
			distinct = append(distinct, err)
		}
		seen[err.Error()] = true
	}
	return distinct
}

// checkSelections refuses exclusions and inclusions that name an axis or a level that does not exist.
func checkSelections(spec *v1alpha1.CampaignSpec, axes []axis, matrix *field.Path) (errs field.ErrorList) {
	for i, selection := range spec.Matrix.Exclude {
		errs = append(errs, checkLevels(selection, axes, matrix.Child("exclude").Index(i))...)
	}
	for _, inclusion := range spec.Matrix.Include {
		errs = append(errs, checkLevels(inclusion.Levels, axes, matrix.Child("include").Key(string(inclusion.Name)).Child("levels"))...)
	}
	return errs
}

func checkLevels(selection map[string]v1alpha1.LevelName, axes []axis, at *field.Path) (errs field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(selection)) {
		i := slices.IndexFunc(axes, func(a axis) bool { return a.name == name })
		if i < 0 {
			all := make([]string, len(axes))
			for j := range axes {
				all[j] = axes[j].name
			}
			errs = append(errs, field.Invalid(at, name, "there is no such axis"+wording.DidYouMean(name, all)))
			continue
		}
		if findLevel(axes[i].levels, selection[name]) == nil {
			all := make([]string, len(axes[i].levels))
			for j, level := range axes[i].levels {
				all[j] = string(level.Name)
			}
			level := string(selection[name])
			errs = append(errs, field.Invalid(at.Child(name), level, "the axis has no such level"+wording.DidYouMean(level, all)))
		}
	}
	return errs
}

func findLevel(levels []v1alpha1.Level, name v1alpha1.LevelName) *v1alpha1.Level {
	for i := range levels {
		if levels[i].Name == name {
			return &levels[i]
		}
	}
	return nil
}

// combinations of one level of each axis, the last axis changing fastest.
func combinations(axes []axis, exclude []v1alpha1.Selection) []*Point {
	points := []*Point{{Levels: map[string]v1alpha1.LevelName{}}}
	for _, axis := range axes {
		var next []*Point
		for _, point := range points {
			for _, level := range axis.levels {
				levels := maps.Clone(point.Levels)
				levels[axis.name] = level.Name
				next = append(next, &Point{
					Levels: levels, Settings: slices.Concat(point.Settings, level.Set), full: join(point.full, string(level.Name)),
				})
			}
		}
		points = next
	}
	points = slices.DeleteFunc(points, func(p *Point) bool {
		return slices.ContainsFunc(exclude, func(s v1alpha1.Selection) bool { return matches(s, p.Levels) })
	})
	for _, point := range points {
		if len(axes) == 0 {
			point.full = templatePoint
		}
		point.Name = pointName(point.full)
	}
	return points
}

func join(names, name string) string {
	if names == "" {
		return name
	}
	return names + "-" + name
}

func matches(selection v1alpha1.Selection, levels map[string]v1alpha1.LevelName) bool {
	for axis, level := range selection {
		if levels[axis] != level {
			return false
		}
	}
	return true
}

func inclusions(include []v1alpha1.Inclusion, axes []axis) (points []*Point) {
	for _, given := range include {
		point := &Point{Name: pointName(string(given.Name)), full: string(given.Name), Levels: maps.Clone(given.Levels), Included: true}
		for _, axis := range axes {
			if level, named := given.Levels[axis.name]; named {
				point.Settings = append(point.Settings, findLevel(axis.levels, level).Set...)
			}
		}
		point.Settings = append(point.Settings, given.Set...)
		points = append(points, point)
	}
	return points
}

func checkPoints(points []*Point, spec *v1alpha1.CampaignSpec, matrix *field.Path) (errs field.ErrorList) {
	if len(points) == 0 {
		return field.ErrorList{field.Invalid(matrix.Child("exclude"), len(spec.Matrix.Exclude), "no point is left: every combination of levels is excluded")}
	}
	if n := len(points) * int(max(1, spec.Repeats)); n > MaxRuns {
		errs = append(errs, field.Invalid(matrix, n, fmt.Sprintf("%d points × %d repeats are more than %d runs", len(points), max(1, spec.Repeats), MaxRuns)))
	}
	for i, seed := range spec.Seeds {
		if seed == 0 {
			errs = append(errs, field.Invalid(field.NewPath("spec", "seeds").Index(i), seed, "use another number: 0 stands for an experiment's default, 1"))
		}
		if slices.Contains(spec.Seeds[:i], seed) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "seeds").Index(i), seed, "is an earlier repeat's seed: use another number, or both repeats have equal draws"))
		}
	}
	byName := map[string]*Point{}
	for _, point := range points {
		errs = append(errs, checkRemovals(point, matrix)...)
		if other := byName[point.Name]; other != nil {
			errs = append(errs, field.Invalid(matrix, point.Name, fmt.Sprintf("the points %s and %s both have the name %s: give one of them, or a level of it, another name", other.full, point.full, point.Name)))
		}
		if point.Name == "" {
			errs = append(errs, field.Invalid(matrix, point.full, "the names of its levels have no letter and no digit to name the point by"))
		}
		byName[point.Name] = point
	}
	return dedupe(errs)
}

// checkRemovals refuses to remove an element by its index beside another setting in the same list, whose index it may change.
func checkRemovals(point *Point, matrix *field.Path) (errs field.ErrorList) {
	for i, removal := range point.Settings {
		path, err := fieldpath.Parse(string(removal.Path))
		if err != nil || removal.Value != nil || !path.EndsAtIndex(fieldpath.Experiment()) {
			continue
		}
		list := path[:len(path)-1].String()
		for j, other := range point.Settings {
			if i != j && strings.HasPrefix(string(other.Path), list+"[") {
				errs = append(errs, field.Invalid(matrix, string(removal.Path), fmt.Sprintf("is removed in a point that also sets %s, whose index changes by that: set all of %s instead", other.Path, list)))
			}
		}
	}
	return errs
}

// checkNames refuses equal names of experiments of different points, which two shortened names with one digest have.
func checkNames(runs []Run, matrix *field.Path) (errs field.ErrorList) {
	byName := map[string]Run{}
	for _, run := range runs {
		if other, twice := byName[run.Name]; twice {
			errs = append(errs, field.Invalid(matrix, run.Name, fmt.Sprintf("experiments of the points %s and %s both have the name %s: give one of them, or a level of it, another name",
				other.Point.full, run.Point.full, run.Name)))
		}
		byName[run.Name] = run
	}
	return errs
}
