// Package timeline compiles an experiment's timeline into actions for agents, and computes the ends of the workflow's steps.
// It is pure. Times are offsets from T0.
package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Timeline is the compiled timeline of a run.
type Timeline struct {
	// Actions in order of time. At the same time stops come before starts, so that a restart works.
	Actions []runapi.Action
	// Duration is the minimum time of the run before the drain, Never for a live cluster.
	Duration time.Duration
	// publishers are the targets whose stop ends the run.
	publishers map[runapi.Target]bool
}

// Never is the duration of a live cluster. It is longer than any run, but other durations can be added to it.
const Never = 100 * 365 * 24 * time.Hour

// Live reports whether the run ends only with `spec.stop`.
func (t *Timeline) Live() bool { return t.Duration == Never }

// EarlyStopID is the id of the action that `spec.stop` adds.
const EarlyStopID = "early-stop"

// Compile compiles the timeline of an experiment and returns all invalid entries.
//
// A target is one app on one node. If no entry starts it, it starts at T0. A publisher that still runs is stopped at the
// experiment's duration, if it has one. Everything else that still runs ends after the drain.
func Compile(spec *v1alpha1.ExperimentSpec, t *topology.Topology) (*Timeline, field.ErrorList) {
	c := compiler{topology: t, moments: map[moment][]runapi.Target{}, lastMoment: map[runapi.Target]moment{}, started: map[runapi.Target]bool{}}
	entries := slices.Clone(spec.Timeline)
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(entries[a].At.Std(), entries[b].At.Std()) })
	for _, i := range order {
		c.entry(entries[i], field.NewPath("spec", "timeline").Index(i))
	}
	result := &Timeline{Duration: Never, publishers: map[runapi.Target]bool{}}
	if spec.Duration != "" {
		result.Duration = spec.Duration.Std()
	}
	for _, node := range t.Nodes {
		for _, name := range node.Apps {
			target := runapi.Target{Node: node.Name, App: name}
			app, _ := t.App(name)
			if !c.started[target] {
				c.addEntry(moment{0, runapi.VerbStart}, target)
			}
			// Messages of the user's own apps are unknown, but one that the timeline stops counts as a publisher.
			if !sends(app) && (!app.Own() || c.lastMoment[target].verb != runapi.VerbStop) {
				continue
			}
			result.publishers[target] = true
			if c.lastMoment[target].verb != runapi.VerbStop && !result.Live() {
				c.add(result.Duration, runapi.VerbStop, target)
			}
		}
	}
	result.Actions = c.actions()
	return result, c.errs
}

// sends reports whether an app of the platform sends messages.
func sends(app v1alpha1.App) bool {
	return app.Publisher != nil || app.MGEN != nil || app.Script != nil || app.Messaging != nil && app.Messaging.Sends()
}

type moment struct {
	at   time.Duration
	verb runapi.Verb
}

type compiler struct {
	topology *topology.Topology
	moments  map[moment][]runapi.Target
	// lastMoment is the last entry of each target.
	lastMoment map[runapi.Target]moment
	started    map[runapi.Target]bool
	errs       field.ErrorList
}

func (c *compiler) entry(entry v1alpha1.TimelineEntry, path *field.Path) {
	stop, start := c.targets(entry.Stop, path.Child("stop")), c.targets(entry.Start, path.Child("start"))
	offsets := c.staggeredOffsets(entry.Over, append(slices.Clone(stop), start...))
	// Stops come first, because an entry that names an app in both restarts it.
	for _, target := range stop {
		c.addEntry(moment{entry.At.Std() + offsets[target], runapi.VerbStop}, target)
	}
	for _, target := range start {
		c.addEntry(moment{entry.At.Std() + offsets[target], runapi.VerbStart}, target)
	}
}

// targets are those of references, each as often as it is named.
func (c *compiler) targets(references []string, path *field.Path) (all []runapi.Target) {
	for i, reference := range references {
		targets, err := Targets(c.topology, reference)
		if err != nil {
			c.errs = append(c.errs, field.Invalid(path.Index(i), reference, err.Error()))
		}
		all = append(all, targets...)
	}
	return all
}

// staggeredOffsets spreads targets over a time, in the order of nodes and of each node's apps. A target has one offset, even
// if it is named several times.
func (c *compiler) staggeredOffsets(over *v1alpha1.Duration, targets []runapi.Target) (offsets map[runapi.Target]time.Duration) {
	if over == nil {
		return nil
	}
	offsets = make(map[runapi.Target]time.Duration, len(targets))
	for _, target := range targets {
		offsets[target] = 0
	}
	before, count := time.Duration(0), time.Duration(len(offsets))
	for _, node := range c.topology.Nodes {
		for _, app := range node.Apps {
			target := runapi.Target{Node: node.Name, App: app}
			if _, named := offsets[target]; named {
				offsets[target] = over.Std()/count*before + over.Std()%count*before/count
				before++
			}
		}
	}
	return offsets
}

// addEntry adds an entry's action for a target. A staggered entry may come after one that begins later.
func (c *compiler) addEntry(m moment, target runapi.Target) {
	c.add(m.at, m.verb, target)
	last := c.lastMoment[target]
	if m.at > last.at || m.at == last.at && last.verb != runapi.VerbStart { // at the same time the start comes last: Actions
		c.lastMoment[target] = m
	}
	c.started[target] = c.started[target] || m.verb == runapi.VerbStart
}

func (c *compiler) add(at time.Duration, verb runapi.Verb, target runapi.Target) {
	m := moment{at, verb}
	if !slices.Contains(c.moments[m], target) {
		c.moments[m] = append(c.moments[m], target)
	}
}

func (c *compiler) actions() []runapi.Action {
	keys := slices.SortedFunc(maps.Keys(c.moments), func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.verb, a.verb)) // "stop" before "start"
	})
	actions := make([]runapi.Action, len(keys))
	for i, m := range keys {
		targets := c.moments[m]
		slices.SortFunc(targets, compareTargets)
		actions[i] = runapi.Action{ID: fmt.Sprintf("%03d-%s", i+1, m.verb), AtNanoseconds: int64(m.at), Verb: m.verb, Targets: targets}
	}
	return actions
}

func compareTargets(a, b runapi.Target) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.App, b.App))
}

// Targets returns the targets of a reference, which is an app (on every node that runs it), node/app or group/app. The name
// of a node with a count stands for all of its nodes.
func Targets(t *topology.Topology, reference string) ([]runapi.Target, error) {
	where, app, qualified := strings.Cut(reference, "/")
	if !qualified {
		where, app = "", reference
	}
	if _, found := t.App(app); !found {
		return nil, fmt.Errorf("there is no app %q", app)
	}
	var targets []runapi.Target
	if node, found := t.Node(where); found && node.Runs(app) {
		return []runapi.Target{{Node: where, App: app}}, nil
	}
	for _, node := range t.NodesRunning(app) {
		if !qualified || node.Group == where || node.Template == where {
			targets = append(targets, runapi.Target{Node: node.Name, App: app})
		}
	}
	if len(targets) == 0 && qualified {
		return nil, fmt.Errorf("neither a node nor a group %q runs app %q", where, app)
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("no node runs app %q", app)
	}
	return targets, nil
}
