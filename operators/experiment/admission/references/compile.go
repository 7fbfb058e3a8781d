package references

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/lru"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// compiledSpec is what follows from the spec alone. It is immutable.
type compiledSpec struct {
	spec v1alpha1.ExperimentSpec
	*checks.Compiled
}

// maxCachedExperiments limits a cache. Active experiments are reconciled every few seconds, and their specs rarely change.
const maxCachedExperiments = 2000

// experimentCache holds what was found out of experiments, by their UIDs.
type experimentCache struct {
	once sync.Once
	held *lru.Cache
}

func (c *experimentCache) entries() *lru.Cache {
	c.once.Do(func() { c.held = lru.New(maxCachedExperiments) })
	return c.held
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
		e := s.Experiment.DeepCopy()
		c = &compiledSpec{e.Spec, checks.Spec(e, s.Options)}
		specs.Add(uid, c)
	}
	s.Topology, s.Timeline, s.Findings, s.Valid = c.Topology, c.Timeline, nil, c.Valid
	addFindings(s, c.Findings)
	return false, nil
}

func addFindings(s *scope.Scope, found []checks.Finding) {
	for _, f := range found {
		s.AddFinding(f.Reason, f.Error)
	}
}
