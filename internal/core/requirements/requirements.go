// Package requirements computes what an experiment takes of a cluster, and for how long. It needs no cluster.
package requirements

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// An experiment takes startTime plus startTimePerNode from its admission to T0. From the end of the drain until its
	// nodes are gone it takes collectTime plus a twentieth of its duration.
	startTime, startTimePerNode, collectTime = time.Minute, time.Second, 2 * time.Minute
	// StartLead is the default time from "every agent is ready" to T0.
	StartLead = 5 * time.Second
)

// Requirements of an experiment follow from its spec.
type Requirements struct {
	// Pods by which its nodes take room, EMANE those of its networks' emulator.
	Pods, EMANE []*corev1.Pod
	// BeforeT0 is the time from admission to T0, AfterT0 that from T0 until the nodes are gone. For a live cluster AfterT0
	// is queue.Forever. AfterStop is the time from a stop until the nodes are gone.
	BeforeT0, AfterT0, AfterStop time.Duration
}

// Of returns the requirements of an experiment, false if its spec is invalid.
func Of(e *v1alpha1.Experiment, options render.Options, templates map[string]v1alpha1.VirtualMachine, startLead time.Duration) (Requirements, bool) {
	t, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		return Requirements{}, false
	}
	compiled, errs := timeline.Compile(&e.Spec, t)
	if len(errs) > 0 {
		return Requirements{}, false
	}
	input := render.Input{Experiment: e, Topology: t, Options: options, Templates: templates}
	r := Requirements{
		Pods:      render.Footprints(input),
		EMANE:     render.EMANEFootprints(input),
		AfterT0:   queue.Forever,
		AfterStop: e.Spec.Drain.Max.Std() + collectTime,
	}
	r.BeforeT0 = startTime + time.Duration(len(r.Pods))*startTimePerNode + startLead
	if !compiled.Live() {
		end := compiled.End(nil)
		r.AfterT0 = end + r.AfterStop + end/20
	}
	return r, true
}

// Duration is the time from admission until the nodes are gone.
func (r *Requirements) Duration() time.Duration {
	if r.AfterT0 == queue.Forever {
		return queue.Forever
	}
	return r.BeforeT0 + r.AfterT0
}

// Waits reports whether an experiment is in the platform's queue, not in Kueue's.
func Waits(e *v1alpha1.Experiment) bool {
	return e.DeletionTimestamp.IsZero() && e.Status.Phase == v1alpha1.PhaseQueued && e.Spec.QueueName == "" && !e.Spec.Stop &&
		meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionAccepted)
}
