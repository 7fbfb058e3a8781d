package mapdata

import (
	"context"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// run is a run as the operator has planned it.
type run struct {
	plan     runapi.Plan
	topology *topology.Topology
	scenario *render.Scenario
	// networks are the specs for radiod, with the live changes so far.
	networks []v1alpha1.RadioNetworkSpec
	// sealed is set when the run's logs no longer grow.
	sealed bool
}

// read a run as the user.
func read(ctx context.Context, s Source, uid string) (*run, error) {
	state, err := s.Archive.State(ctx, uid)
	if err != nil {
		return nil, explain(err, "run "+uid)
	}
	r, err := newRun(state.Plan)
	if err == nil {
		r.sealed = state.Sealed
	}
	return r, err
}

// keptRun is a run as it was read at a time.
type keptRun struct {
	run *run
	at  time.Time
}

const (
	// maxKeptRuns of open pages.
	maxKeptRuns = 32
	// runLifetime of what was read: the state of a large run has a megabyte, and a page asks every few seconds.
	runLifetime = 5 * time.Second
)

// recentRun reads a run, unless it was read lately. The caller has checked that the user may read it.
func (m *Maps) recentRun(ctx context.Context, s Source, uid string) (*run, error) {
	if kept, known := m.runs.get(uid); known && time.Since(kept.at) < runLifetime {
		return kept.run, nil
	}
	r, err := read(ctx, s, uid)
	if err == nil {
		m.runs.put(uid, keptRun{r, time.Now()})
	}
	return r, err
}

// newRun renders a plan's networks as the operator does.
func newRun(plan runapi.Plan) (*run, error) {
	expanded, errs := topology.Expand(&plan.Spec)
	if len(errs) > 0 {
		return nil, errorf(http.StatusUnprocessableEntity, "run %s has a topology that this version refuses: %v", plan.UID, errs.ToAggregate())
	}
	r := &run{plan: plan, topology: expanded}
	if p := plan.Scenario; p != nil {
		r.scenario = &render.Scenario{Name: p.Name, Digest: p.Digest, Statistics: p.Statistics}
	}
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: plan.Namespace, Name: plan.Name, UID: types.UID(plan.UID)}, Spec: plan.Spec}
	for _, network := range render.RadioNetworks(render.Input{Experiment: e, Topology: expanded, Scenario: r.scenario}, render.WaveformsOf(&plan.Spec, plan.Waveforms), nil) {
		spec := network.Spec
		for _, live := range plan.LiveChanges {
			for _, change := range live.Changes {
				if change.Network == spec.Network {
					spec.Changes = render.AddChanges(spec.Changes, v1alpha1.TimedRadioChange{AtNanoseconds: live.AtNanoseconds, RadioChange: change})
				}
			}
		}
		if end := plan.MeasureEndNanoseconds; end != nil { // what a stop has prevented
			spec.Changes = slices.DeleteFunc(spec.Changes, func(c v1alpha1.TimedRadioChange) bool { return c.AtNanoseconds > *end })
		}
		if plan.T0 != nil {
			spec.T0 = &metav1.MicroTime{Time: *plan.T0}
		}
		r.networks = append(r.networks, spec)
	}
	return r, nil
}

// withoutRadios are the networks of the link model.
func (r *run) withoutRadios() map[string]bool {
	found := map[string]bool{}
	for i := range r.networks {
		if r.networks[i].Waveform.PHY() == nil {
			found[r.networks[i].Network] = true
		}
	}
	return found
}

// end of the run after T0; 0 if it has none yet. A run that was stopped ends before its duration.
func (r *run) end() time.Duration {
	if measured := r.plan.MeasureEndNanoseconds; measured != nil {
		return max(time.Duration(*measured), 1) // 0 would be a run that goes on
	}
	return r.plan.Spec.Duration.Std()
}

// brokers are the nodes on which an app is a broker of others.
func (r *run) brokers() map[string]bool {
	apps := map[string]bool{}
	for _, node := range r.plan.Nodes {
		for _, app := range node.Apps {
			for _, broker := range app.Brokers {
				apps[broker] = true
			}
		}
	}
	nodes := map[string]bool{}
	for _, node := range r.plan.Nodes {
		for _, app := range node.Apps {
			nodes[node.Name] = nodes[node.Name] || apps[node.Name+"/"+app.Name]
		}
	}
	return nodes
}
