package references

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/lru"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/experiment/timeline"
	"vignette.dev/vignette/operators/experiment/topology"
)

// compiledSpec is what follows from the spec alone. It is immutable.
type compiledSpec struct {
	spec     v1alpha1.ExperimentSpec
	topology *topology.Topology
	timeline *timeline.Timeline
	findings []scope.Finding
}

// maxCompiledSpecs limits the cache. Active experiments are reconciled every few seconds, and their specs rarely change.
const maxCompiledSpecs = 2000

// specCache holds compiled specs by their experiments' UIDs.
type specCache struct {
	once  sync.Once
	specs *lru.Cache
}

func (m *specCache) entries() *lru.Cache {
	m.once.Do(func() { m.specs = lru.New(maxCompiledSpecs) })
	return m.specs
}

// Compile compiles the spec. The API server has rejected most errors before.
func (r *Resolver) Compile(_ context.Context, s *scope.Scope) (bool, error) {
	uid, specs := s.Experiment.UID, r.specs.entries()
	if scope.Finished(s.Phase()) {
		specs.Remove(uid)
		return false, nil
	}
	known, _ := specs.Get(uid)
	c, ok := known.(*compiledSpec)
	if !ok || !equality.Semantic.DeepEqual(c.spec, s.Experiment.Spec) {
		c = compileSpec(s)
		specs.Add(uid, c)
	}
	s.Topology, s.Timeline, s.Findings = c.topology, c.timeline, slices.Clone(c.findings)
	return false, nil
}

func compileSpec(s *scope.Scope) *compiledSpec {
	spec := s.Experiment.Spec.DeepCopy()
	t, errs := topology.Expand(spec)
	errs = append(errs, render.Check(spec)...)
	if len(errs) == 0 {
		errs = append(errs, t.CheckReferences(spec)...)
		errs = append(errs, render.CheckRadio(spec, t)...)
		errs = append(errs, render.CheckMessaging(spec, t)...)
		errs = append(errs, render.CheckEncodings(spec)...)
	}
	times, timelineErrs := timeline.Compile(spec, t)
	errs = append(errs, timelineErrs...)
	s.Topology, s.Timeline = t, times
	if len(errs) == 0 {
		errs = render.CheckSize(render.Pods(s.RenderInput()), spec)
	}
	c := &compiledSpec{spec: *spec, topology: t, timeline: times}
	for _, err := range errs {
		c.findings = append(c.findings, scope.Finding{Reason: scope.ReasonInvalid, Message: err.Error()})
	}
	return c
}
