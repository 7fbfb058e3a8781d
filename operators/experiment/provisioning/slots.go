package provisioning

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/experiment/scope"
)

// awaitStartSlot waits until the limit of experiments that start at once has room for this one.
func (p *Provisioner) awaitStartSlot(_ context.Context, s *scope.Scope) (bool, error) {
	e := s.Experiment
	since, before := p.Starts.Acquire(waiterOf(s), s.FirstNodeCreated())
	if before == 0 {
		s.StartingSince = since
		if since.Equal(s.Now) {
			e.Status.Message = scope.CreatingNodes
		}
		return false, nil
	}
	e.Status.Message = fmt.Sprintf("admitted; waiting for a start slot: %d experiments are starting", p.Starts.Starting)
	s.RequeueAfter(slotRetryAfter(before))
	return true, nil
}

// waiterOf is the experiment's entry in the Limiter.
func waiterOf(s *scope.Scope) Waiter {
	e := s.Experiment
	w := Waiter{UID: e.UID, Name: client.ObjectKeyFromObject(e), AdmittedAt: e.CreationTimestamp.Time, AskedAt: s.Now}
	if e.Status.StartTime != nil {
		w.AdmittedAt = e.Status.StartTime.Time
	}
	return w
}

// beginCreating limits the experiments that create nodes to half of the workers. Creation takes long, and the other
// workers must set the actions of running experiments in time.
func (p *Provisioner) beginCreating(_ context.Context, s *scope.Scope) (bool, error) {
	before := p.Starts.BeginCreating(waiterOf(s))
	if before > 0 {
		s.RequeueAfter(slotRetryAfter(before))
	}
	return before > 0, nil
}

// endCreating wakes the next experiment that may create its nodes.
func (p *Provisioner) endCreating(s *scope.Scope) {
	if next, found := p.Starts.EndCreating(s.Experiment.UID); found {
		p.Wakeups.Wake(next)
	}
}

// noteReleased records that the operator has created and released all of the experiment's nodes.
func (p *Provisioner) noteReleased(_ context.Context, s *scope.Scope) (bool, error) {
	p.Starts.NoteReleased(s.Experiment.UID, s.Now)
	return false, nil
}

// FreeSlot frees the slot of an experiment that has left Provisioning and wakes the next.
func (p *Provisioner) FreeSlot(experiment types.UID) {
	if next, found := p.Starts.Leave(experiment); found {
		p.Wakeups.Wake(next)
	}
}
