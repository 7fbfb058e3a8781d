package decide

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// simulation is a campaign with simulated experiments.
type simulation struct {
	t        *testing.T
	draw     *rand.Rand
	campaign *v1alpha1.Campaign
	now      time.Time
	world    map[string]*ObservedExperiment
	// made counts the experiments of each run, by round, point and repeat.
	made map[string]int

	uids   int
	events []Event
	// undisturbed means that there are no more edits and crashes.
	undisturbed bool
	// full means that a quota has no room for an experiment.
	full bool
}

func values(texts ...string) (all []apiextensionsv1.JSON) {
	for _, text := range texts {
		all = append(all, apiextensionsv1.JSON{Raw: []byte(`"` + text + `"`)})
	}
	return all
}

func newSimulation(t *testing.T, spec *v1alpha1.CampaignSpec, seed uint64) *simulation {
	p := &simulation{
		t: t, draw: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		world: map[string]*ObservedExperiment{}, made: map[string]int{},
	}
	spec.Template.Spec.Duration = "1m"
	spec.Template.Spec.Apps = []v1alpha1.App{{Name: "bft"}}
	p.campaign = &v1alpha1.Campaign{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1, CreationTimestamp: metav1.NewTime(p.now)}, Spec: *spec}
	return p
}

func (p *simulation) edit(change func(*v1alpha1.CampaignSpec)) {
	change(&p.campaign.Spec)
	p.campaign.Generation++
}

func (p *simulation) chance(oneIn int) bool { return !p.undisturbed && p.draw.IntN(oneIn) == 0 }

// observed are the experiments as the controller observes them, including deleted ones.
func (p *simulation) observed() Observed {
	world := Observed{}
	for name, e := range p.world {
		world[name] = *e
	}
	for i := range p.campaign.Status.Runs {
		run := &p.campaign.Status.Runs[i]
		if e, found := world[run.Name]; IsActive(run) && run.UID != "" && (!found || e.UID != run.UID) {
			world[run.Name] = ObservedExperiment{Name: run.Name, UID: run.UID, Gone: true, Owned: true}
		}
	}
	return world
}

// reconcile reconciles once, with possible crashes. It reports whether nothing was left to do.
func (p *simulation) reconcile() (settled bool) {
	p.t.Helper()
	before := p.campaign.DeepCopy()
	actions, err := Step(p.campaign, true, p.observed(), p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	p.events = append(p.events, actions.Events...)
	if !equality.Semantic.DeepEqual(before.Status, p.campaign.Status) {
		if p.chance(4) { // killed before the status was written
			p.campaign.Status = before.Status
		}
		return false
	}
	for _, name := range actions.Create {
		if p.chance(4) {
			return false // killed between two actions
		}
		p.create(name)
	}
	for _, seen := range actions.Stop {
		p.world[seen.Name].Phase = v1alpha1.PhaseSucceeded
	}
	for _, seen := range actions.Delete {
		delete(p.world, seen.Name)
	}
	if actions.Compare {
		p.campaign.Status.Comparison = &v1alpha1.ComparisonStatus{Round: p.campaign.Status.Round}
	}
	return len(actions.Create)+len(actions.Stop)+len(actions.Delete) == 0 && !actions.Compare
}

func (p *simulation) create(name string) {
	p.t.Helper()
	if p.full || p.world[name] != nil {
		return // Forbidden, or AlreadyExists
	}
	i := slices.IndexFunc(p.campaign.Status.Runs, func(r v1alpha1.CampaignRun) bool { return r.Name == name })
	run := &p.campaign.Status.Runs[i]
	id := fmt.Sprintf("%d %s#%d", p.campaign.Status.Round, key(run), run.Repeat)
	if p.made[id]++; p.made[id] > 1+int(run.Retry) {

		p.t.Fatalf("%s (%s) was made %d times", id, name, p.made[id])
	}
	p.uids++
	p.world[name] = &ObservedExperiment{Name: name, UID: types.UID(fmt.Sprint("uid-", p.uids)), Owned: true, Round: p.campaign.Status.Round}
	if !p.chance(4) { // else killed before it was recorded
		run.UID = p.world[name].UID
	}
}

// advanceOne changes the phase of one experiment.
func (p *simulation) advanceOne() {
	names := []string{}
	for name := range p.world {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return
	}
	e := p.world[names[p.draw.IntN(len(names))]]
	recorded := slices.ContainsFunc(p.campaign.Status.Runs, func(r v1alpha1.CampaignRun) bool { return r.UID == e.UID })
	switch {
	case p.chance(12) && recorded:
		delete(p.world, e.Name)
	case e.Phase == v1alpha1.PhaseSucceeded || e.Phase == v1alpha1.PhaseFailed:
	case e.Phase == "":
		e.Phase = v1alpha1.PhaseRunning
	default:
		e.Phase = v1alpha1.PhaseSucceeded
		if p.draw.IntN(8) == 0 {
			e.Phase, e.Message = v1alpha1.PhaseFailed, "boom"
		}
		e.CompletionTime = &metav1.Time{Time: p.now}
	}
}

// finish runs the campaign to its end.
func (p *simulation) finish() {
	p.t.Helper()
	for range 5000 {
		if p.reconcile() && (p.campaign.Status.Phase == v1alpha1.CampaignSucceeded || p.campaign.Status.Phase == v1alpha1.CampaignFailed) {
			return
		}
		p.now = p.now.Add(time.Second)
		p.advanceOne()
	}
	p.t.Fatalf("no end: %s: %s", p.campaign.Status.Phase, p.campaign.Status.Message)
}

// editRandomly edits the campaign in a random way.
func (p *simulation) editRandomly() {
	levels := []string{"1s", "2s", "5s", "10s", "1m"}
	p.edit(func(spec *v1alpha1.CampaignSpec) {
		axes := spec.Matrix.Axes
		switch p.draw.IntN(10) {
		case 0, 1: // other levels
			p.draw.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
			axes[p.draw.IntN(len(axes))].Values = values(levels[:1+p.draw.IntN(4)]...)
		case 2:
			spec.Repeats = 1 + p.draw.Int32N(4)
		case 3:
			spec.Parallelism = 1 + p.draw.Int32N(4)
		case 4:
			spec.Suspend = !spec.Suspend
		case 5:
			slices.Reverse(axes)
		case 6:
			spec.Order = []v1alpha1.RunOrder{v1alpha1.OrderByPoint, v1alpha1.OrderByRepeat, v1alpha1.OrderShuffled}[p.draw.IntN(3)]
		case 7:
			spec.Matrix.Include = nil
			if p.draw.IntN(2) == 0 {
				spec.Matrix.Include = []v1alpha1.Inclusion{{Name: "extra", Set: []v1alpha1.Setting{{Path: "duration", Value: &values("9s")[0]}}}}
			}
		case 8:
			kept := p.draw.Int32N(4)
			spec.History.Succeeded = &kept
		case 9:
			spec.Retries = p.draw.Int32N(3)
		}
	})
}

func twoAxes() *v1alpha1.CampaignSpec {
	return &v1alpha1.CampaignSpec{Parallelism: 2, Repeats: 2, Matrix: v1alpha1.Matrix{Axes: []v1alpha1.Axis{
		{Name: "drain", Path: "drain.max", Values: values("1s", "2s")},
		{Name: "quiet", Path: "drain.quietFor", Values: values("1s", "5s")},
	}}}
}

func TestNoRunIsEverCreatedTwiceAndNoneOfTheLastSpecIsMissing(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newSimulation(t, twoAxes(), seed)
			for range 200 {
				p.now = p.now.Add(time.Duration(p.draw.IntN(5)) * time.Second)
				switch p.draw.IntN(8) {
				case 0:
					p.editRandomly()
				case 1, 2, 3:
					p.advanceOne()
				default:
					p.reconcile()
				}
			}
			p.undisturbed = true
			p.edit(func(spec *v1alpha1.CampaignSpec) { spec.Suspend = false })
			p.finish()
			p.checkComplete()
		})
	}
}

// checkComplete checks that each run of the spec is in the status once and done.
func (p *simulation) checkComplete() {
	p.t.Helper()
	plan, errs := matrix.Expand("c", 0, &p.campaign.Spec)
	if len(errs) > 0 {
		p.t.Fatal(errs)
	}
	have, names, tries := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range p.campaign.Status.Runs {
		run := &p.campaign.Status.Runs[i]
		if !IsDone(run) {
			p.t.Errorf("%s is %s in the end", run.Name, run.Phase)
		}
		have[repeatKey(key(run), run.Repeat)]++
		tries[repeatKey(key(run), run.Repeat)] = 1 + int(run.Retry)
		if names[run.Name]++; names[run.Name] > 1 {
			p.t.Errorf("two runs are named %s", run.Name)
		}
	}
	for _, run := range plan.Runs {
		if n := have[plannedKey(run)]; n != 1 {
			p.t.Errorf("run %s is in the status %d times", run.Name, n)
		}
		if n := p.made["1 "+plannedKey(run)]; n != tries[plannedKey(run)] {
			p.t.Errorf("run %s was made %d times, want %d", run.Name, n, tries[plannedKey(run)])
		}
	}
}

func TestASettledCampaignIsLeftAlone(t *testing.T) {
	p := newSimulation(t, twoAxes(), 1)
	p.undisturbed = true
	p.finish()
	before := p.campaign.DeepCopy()
	for range 3 {
		p.now = p.now.Add(time.Hour)
		if !p.reconcile() || !equality.Semantic.DeepEqual(before.Status, p.campaign.Status) {
			t.Fatalf("something was done to a campaign that is over: %+v", p.campaign.Status)
		}
	}
}

func TestFailedRunsAreMadeAgainAsOftenAsTheCampaignSays(t *testing.T) {
	spec, none := twoAxes(), int32(0)
	spec.Repeats, spec.History.Failed = 10, &none
	p := newSimulation(t, spec, 1)
	p.undisturbed = true
	p.finish()
	before := p.campaign.Status.Counts
	p.edit(func(spec *v1alpha1.CampaignSpec) { spec.Retries = 2 })
	p.finish()
	p.checkComplete()
	retried := map[int32]int{}
	for i := range p.campaign.Status.Runs {
		run := &p.campaign.Status.Runs[i]
		retried[run.Retry]++
		if isFailed(run) && run.Retry < 2 {
			t.Errorf("%s failed and is not made again", run.Name)
		}
		if name := fmt.Sprintf("-try%d", run.Retry+1); run.Retry > 0 != strings.HasSuffix(run.Name, name) {
			t.Errorf("retry %d of a run is %s", run.Retry, run.Name)
		}
	}
	if after := p.campaign.Status.Counts; before.Failed == 0 || retried[1]+retried[2] != int(before.Failed) || after.Succeeded <= before.Succeeded || after.Total != before.Total {
		t.Errorf("%+v, then %+v with %v runs by retry: want each failed one made again", before, after, retried)
	}
	for name, e := range p.world {
		if e.Phase == v1alpha1.PhaseFailed {
			t.Errorf("%s stays, and history.failed is 0", name)
		}
	}
}

func TestALevelThatIsAddedAddsOnlyItsPoints(t *testing.T) {
	p := newSimulation(t, twoAxes(), 1)
	p.undisturbed = true
	p.finish()
	before := len(p.made)
	p.edit(func(spec *v1alpha1.CampaignSpec) { spec.Matrix.Axes[0].Values = values("1s", "9s", "2s") })
	p.finish()
	p.checkComplete()
	added := 0
	for id := range p.made {
		if strings.Contains(id, "drain=9s") {
			added++
		}
	}
	if len(p.made) != before+4 || added != 4 {
		t.Errorf("made %d runs, %d of the new level, after %d: want 4 more", len(p.made), added, before)
	}
}
