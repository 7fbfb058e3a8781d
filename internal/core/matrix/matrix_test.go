package matrix

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"vignette.dev/vignette/internal/core/fieldpath"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func values(texts ...string) (all []apiextensionsv1.JSON) {
	for _, text := range texts {
		all = append(all, apiextensionsv1.JSON{Raw: []byte(text)})
	}
	return all
}

// brokers × links: an axis of levels and one of values.
func brokers() *v1alpha1.CampaignSpec {
	return &v1alpha1.CampaignSpec{
		Template: v1alpha1.ExperimentTemplate{Spec: v1alpha1.ExperimentSpec{
			Duration: "1m", Seed: 5, Apps: []v1alpha1.App{{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}}}, Networks: []v1alpha1.Network{{Name: "wan"}},
		}},
		Matrix: v1alpha1.Matrix{Axes: []v1alpha1.Axis{
			{Name: "broker", Levels: []v1alpha1.Level{
				{Name: "mosquitto"},
				{Name: "rabbitmq", Set: []v1alpha1.Setting{{Path: "apps[broker].mosquitto"}, {Path: "apps[broker].rabbitmq", Value: &values(`{}`)[0]}}},
			}},
			{Name: "link", Path: "networks[wan].waveform", Values: values(`"lan"`, `"tactical-1"`)},
		}},
	}
}

func expand(t *testing.T, spec *v1alpha1.CampaignSpec) *Plan {
	t.Helper()
	plan, errs := Expand("e4", 0, spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return plan
}

func names(plan *Plan) (all []string) {
	for _, run := range plan.Runs {
		all = append(all, run.Name)
	}
	return all
}

func TestAMatrixBecomesRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.CampaignSpec)
		want   string
	}{
		"every combination": {func(*v1alpha1.CampaignSpec) {},
			"e4-mosquitto-lan-1 e4-mosquitto-tactical-1-1 e4-rabbitmq-lan-1 e4-rabbitmq-tactical-1-1"},
		"an exclusion": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Exclude = []v1alpha1.Selection{{"broker": "rabbitmq", "link": "tactical-1"}}
		},
			"e4-mosquitto-lan-1 e4-mosquitto-tactical-1-1 e4-rabbitmq-lan-1"},
		"an exclusion of any link": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Exclude = []v1alpha1.Selection{{"broker": "rabbitmq"}} },
			"e4-mosquitto-lan-1 e4-mosquitto-tactical-1-1"},
		"an inclusion": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes = s.Matrix.Axes[:1]
			s.Matrix.Include = []v1alpha1.Inclusion{{Name: "Extra", Levels: map[string]v1alpha1.LevelName{"broker": "rabbitmq"}}}
		}, "e4-mosquitto-1 e4-rabbitmq-1 e4-extra-1"},
		"no axes": {func(s *v1alpha1.CampaignSpec) { s.Matrix = v1alpha1.Matrix{} }, "e4-template-1"},
		"each point once before any is repeated": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes, s.Repeats = s.Matrix.Axes[:1], 2 },
			"e4-mosquitto-1 e4-rabbitmq-1 e4-mosquitto-2 e4-rabbitmq-2"},
		"point by point": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes, s.Repeats, s.Order = s.Matrix.Axes[:1], 2, v1alpha1.OrderByPoint
		},
			"e4-mosquitto-1 e4-mosquitto-2 e4-rabbitmq-1 e4-rabbitmq-2"},
		"values of text": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes = []v1alpha1.Axis{{Name: "x", Path: "networks[wan].link.loss", Values: values(`"1%"`, `"1"`, `"9.8kbit"`, `"-3dB"`, `"3dB"`)}}
		}, "e4-1pct-1 e4-1-1 e4-9-8kbit-1 e4-m3db-1 e4-3db-1"},
		"numbers": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes = []v1alpha1.Axis{{Name: "x", Path: "networks[wan].mtu", Values: values(`576`, `1500`)}}
		}, "e4-576-1 e4-1500-1"},
		"yes and no": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes = []v1alpha1.Axis{{Name: "x", Path: "networks[wan].link.reorder", Values: values(`true`, `false`)}}
		}, "e4-true-1 e4-false-1"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := brokers()
			c.change(spec)
			if got := strings.Join(names(expand(t, spec)), " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestErrorsOfAMatrixAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.CampaignSpec)
		want   string
	}{
		"an axis that is misspelt": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Exclude = []v1alpha1.Selection{{"brokr": "rabbitmq"}} },
			`spec.matrix.exclude[0]: Invalid value: "brokr": there is no such axis: did you mean broker?`},
		"a level that is misspelt": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Exclude = []v1alpha1.Selection{{"broker": "rabitmq"}} },
			`did you mean rabbitmq?`},
		"nothing left": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Exclude = []v1alpha1.Selection{{"broker": "rabbitmq"}, {"broker": "mosquitto"}}
		}, `no point is left`},
		"a value twice":             {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes[1].Values = values(`"a"`, `"a"`) }, `spec.matrix.axes[link].values[1]: Duplicate value: "a"`},
		"a value that is no name":   {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes[1].Values = values(`{}`) }, `give levels with names`},
		"names that come out equal": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes[1].Values = values(`"1.5"`, `"1-5"`) }, `the points mosquitto-1.5 and mosquitto-1-5 both have the name mosquitto-1-5`},
		"an axis that undoes another": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes[1].Path = "apps[broker]"
			s.Matrix.Axes[1].Values = values(`1`)
		}, `would undo what axis broker sets: apps[broker].mosquitto`},
		"a level that undoes what it set": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes[0].Levels[1].Set = []v1alpha1.Setting{{Path: "networks[wan].link.rate"}, {Path: "duration"}, {Path: "networks[wan].link"}}
		}, `spec.matrix.axes[broker].levels[1].set[2]: Invalid value: "networks[wan].link": would undo what is set before it: networks[wan].link.rate`},
		"an inclusion that does": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Include = []v1alpha1.Inclusion{{Name: "x", Set: []v1alpha1.Setting{{Path: "duration"}, {Path: "duration"}}}}
		}, `spec.matrix.include[x].set[1]: Invalid value: "duration": would undo what is set before it: duration`},
		"an element that is removed beside another by its index": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes[0].Levels[1].Set = []v1alpha1.Setting{{Path: "timeline[0]"}}
			s.Matrix.Axes[1].Path, s.Matrix.Axes[1].Values = "timeline[1].at", values(`"5s"`, `"6s"`)
		}, `spec.matrix: Invalid value: "timeline[0]": is removed in a point that also sets timeline[1].at, whose index changes by that: set all of timeline instead`},
		"the seed":              {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes[1].Path = "seed"; s.Matrix.Axes[1].Values = values(`1`) }, `give the campaign repeats and seeds`},
		"too many runs":         {func(s *v1alpha1.CampaignSpec) { s.Repeats = 400 }, `4 points × 400 repeats are more than 1000 runs`},
		"too many combinations": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes = manyAxes() }, `more than 100000 combinations`},
		"a path that is none":   {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes[1].Path = "a..b" }, `path "a..b"`},
		"seed 0":                {func(s *v1alpha1.CampaignSpec) { s.Seeds = []int64{0} }, `spec.seeds[0]`},
		"a label's key with a space": {func(s *v1alpha1.CampaignSpec) {
			s.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"example.org/team": "nor", "my team": "nor"}
		}, `spec.template.metadata.labels: Invalid value: "my team": the key must be letters, digits`},
		"an annotation's key with two slashes": {func(s *v1alpha1.CampaignSpec) {
			s.Template.Metadata.Annotations = map[string]v1alpha1.AnnotationValue{"Example.org/Team": "nor", "a/b/c": "x"}
		}, `spec.template.metadata.annotations: Invalid value: "a/b/c": the key must be`},
		"a seed twice":                  {func(s *v1alpha1.CampaignSpec) { s.Seeds = []int64{7, 8, 7} }, `spec.seeds[2]: Invalid value: 7: is an earlier repeat's seed`},
		"an axis without its values":    {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes[1].Values = nil }, `spec.matrix.axes[link].values: Required`},
		"an inclusion named as a point": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Include = []v1alpha1.Inclusion{{Name: "rabbitmq-lan"}} }, `both have the name rabbitmq-lan`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := brokers()
			c.change(spec)
			if _, errs := Expand("e4", 0, spec); len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), c.want) {
				t.Errorf("%v; want %s", errs, c.want)
			}
		})
	}
}

func manyAxes() (axes []v1alpha1.Axis) {
	levels := []string{}
	for i := range 64 {
		levels = append(levels, fmt.Sprint(i))
	}
	for i := range 8 {
		axes = append(axes, v1alpha1.Axis{Name: fmt.Sprintf("a%d", i), Path: v1alpha1.FieldPath(fmt.Sprintf("apps[a%d].x", i)), Values: values(levels...)})
	}
	return axes
}

func TestNamesFitAndStayTheSameWhenLevelsAreAdded(t *testing.T) {
	fits := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	for _, campaign := range []string{"a", "a-campaign-of-24-letters"} {
		for _, round := range []int64{0, 1, 12345678} {
			spec := brokers()
			spec.Repeats = 100
			before, errs := Expand(campaign, round, spec)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			spec.Matrix.Axes[1].Values = values(`"a-level-of-24-characters"`, `"lan"`, `"tactical-1"`, `"tactical-2"`, `"tactical-3"`)
			after, errs := Expand(campaign, round, spec)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			have := map[string]bool{}
			for _, run := range after.Runs {
				have[run.Name] = true
				second := RetryName(run.Name, 0)
				have[second], have[RetryName(second, 1)] = true, true
				for _, name := range []string{run.Name, second} {
					if len(name) > 40 || !fits.MatchString(name) {
						t.Errorf("%q is no name of an experiment", name)
					}
				}
			}
			if len(have) != 3*len(after.Runs) {
				t.Errorf("%d names of %d runs and two retries of each", len(have), len(after.Runs))
			}
			for _, run := range before.Runs {
				if !have[run.Name] {
					t.Errorf("%s has another name once levels are added", run.Name)
				}
			}
		}
	}
}

func TestAShuffledOrderStaysWhenLevelsAreAdded(t *testing.T) {
	spec := brokers()
	spec.Order, spec.Repeats = v1alpha1.OrderShuffled, 5
	before := names(expand(t, spec))
	if slices.IsSorted(before) {
		t.Errorf("%v is in order", before)
	}
	spec.Matrix.Axes[1].Values = values(`"lan"`, `"x"`, `"tactical-1"`)
	after := slices.DeleteFunc(names(expand(t, spec)), func(name string) bool { return strings.Contains(name, "-x-") })
	if !slices.Equal(before, after) {
		t.Errorf("the order of the others changed:\n%v\n%v", before, after)
	}
	spec.Template.Spec.Seed = 6
	if other := slices.DeleteFunc(names(expand(t, spec)), func(name string) bool { return strings.Contains(name, "-x-") }); slices.Equal(before, other) {
		t.Error("another seed gives the same order")
	}
}

func TestRepeatsHaveTheSeedsOfTheListFirst(t *testing.T) {
	for name, c := range map[string]struct {
		template int64
		seeds    []int64
		want     []int64
	}{
		"none given":              {5, nil, []int64{5, 6, 7, 8}},
		"all given":               {5, []int64{9, 8, 7, 6}, []int64{9, 8, 7, 6}},
		"some, and never twice":   {5, []int64{6, 5}, []int64{6, 5, 7, 8}},
		"past the default's zero": {-2, nil, []int64{-2, -1, 1, 2}},
		"of the default":          {0, nil, []int64{1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := brokers()
			spec.Matrix, spec.Repeats, spec.Seeds, spec.Template.Spec.Seed = v1alpha1.Matrix{}, 4, c.seeds, c.template
			var got []int64
			for _, run := range expand(t, spec).Runs {
				got = append(got, run.Seed)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v; want %v", got, c.want)
			}
		})
	}
}

func TestAPointsSpecIsTheTemplateWithItsLevels(t *testing.T) {
	spec := brokers()
	plan := expand(t, spec)
	of := func(i int, seed int64) *Spec {
		t.Helper()
		s, err := plan.Points[i].Spec(&spec.Template.Spec, seed)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	last := of(3, 77)
	if app := last.Typed.Apps[0]; app.Mosquitto != nil || app.RabbitMQ == nil || last.Typed.Networks[0].Waveform != "tactical-1" || last.Typed.Seed != 77 {
		t.Errorf("%+v", last.Typed)
	}
	if last.Digest != of(3, 78).Digest || last.Digest == of(2, 77).Digest {
		t.Error("digests tell seeds apart, or points not")
	}
	if spec.Template.Spec.Apps[0].Mosquitto == nil {
		t.Error("the template was changed")
	}
}

func TestAZeroInTheTemplateIsNotReplacedByTheDefault(t *testing.T) {
	spec := brokers()
	var app v1alpha1.App
	if err := json.Unmarshal([]byte(`{"name": "bft", "publisher": {"adaptRate": {"lowFrames": 0, "maxPeriod": "9s"}}}`), &app); err != nil {
		t.Fatal(err)
	}
	spec.Template.Spec.Apps = append(spec.Template.Spec.Apps, app)
	point, err := expand(t, spec).Points[0].Spec(&spec.Template.Spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	fieldpath.Default(point.Object)
	if text, err := json.Marshal(point.Object); err != nil || !strings.Contains(string(text), `"lowFrames":0`) {
		t.Errorf("%s, %v; want lowFrames 0", text, err)
	}
}

func TestThePlannedDurationHasTheDrainOfTheLevel(t *testing.T) {
	for name, c := range map[string]struct {
		set  []v1alpha1.Setting
		want time.Duration
	}{
		"of the template":    {nil, 90 * time.Second},
		"another duration":   {[]v1alpha1.Setting{{Path: "duration", Value: &values(`"5m"`)[0]}}, 330 * time.Second},
		"a longer drain":     {[]v1alpha1.Setting{{Path: "drain.max", Value: &values(`"10m"`)[0]}}, 660 * time.Second},
		"all of the drain":   {[]v1alpha1.Setting{{Path: "drain", Value: &values(`{"max": "2m"}`)[0]}}, 180 * time.Second},
		"another app":        {[]v1alpha1.Setting{{Path: "apps[broker].instances", Value: &values(`2`)[0]}}, 90 * time.Second},
		"without a duration": {[]v1alpha1.Setting{{Path: "duration"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			template := v1alpha1.ExperimentSpec{Duration: "1m", Drain: v1alpha1.Drain{Max: "30s"}}
			if got := (&Point{Settings: c.set}).Duration(&template); got != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

func TestAPointThatIsNoRunIsRefused(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.CampaignSpec){
		"duration: a run needs one": func(s *v1alpha1.CampaignSpec) { s.Template.Spec.Duration = "" },
		"stop: a run that":          func(s *v1alpha1.CampaignSpec) { s.Template.Spec.Stop = true },
		"apps[brokr]: there is no such element: did you mean broker?": func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Axes[1].Path, s.Matrix.Axes[1].Values = "apps[brokr].instances", values(`1`, `2`)
		},
	} {
		spec := brokers()
		change(spec)
		if _, err := expand(t, spec).Points[0].Spec(&spec.Template.Spec, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
