package experiment

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/freshness"
)

const (
	// resyncInterval is the time after which an active experiment is reconciled without an event, so that a lost event only
	// delays a run.
	resyncInterval = 15 * time.Second
	// finishedResyncInterval is that of finished experiments, of which there may be many.
	finishedResyncInterval = 10 * time.Minute
)

// ensureRequeue makes sure that no experiment depends on an event.
func (s *scope) ensureRequeue() {
	switch {
	case s.finalizerRemoved:
	case finished(s.phase()) && s.experiment.DeletionTimestamp.IsZero():
		s.requeueAfter(finishedResyncInterval)
	case s.requeueIn == 0:
		s.requeueAfter(resyncInterval)
	}
}

// fetch reads an experiment that is not older than this operator's last write to it. In an earlier phase the operator would
// delete the pods of a run, or revert its plan.
func (r *Reconciler) fetch(ctx context.Context, key types.NamespacedName, e *v1alpha1.Experiment) error {
	return freshness.Get(ctx, &r.written, r.Client, r.Live, key, e)
}

// findMissingPods asks the API server for pods that the cache does not show, before they are recorded as lost.
func (r *Reconciler) findMissingPods(ctx context.Context, s *scope, incidents []runapi.Incident) error {
	for _, node := range s.topology.Nodes {
		if s.pods[node.Name] != nil || isRecorded(incidents, loss{node: node.Name, what: incidentNodeFailed}) {
			continue
		}
		if node.IsVM() {
			if err := r.findLauncher(ctx, s, node.Name); err != nil {
				return err
			}
			continue
		}
		var pod corev1.Pod
		key := types.NamespacedName{Namespace: s.experiment.Namespace, Name: render.PodName(s.experiment.Name, node.Name)}
		err := r.Live.Get(ctx, key, &pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && metav1.IsControlledBy(&pod, s.experiment) {
			s.pods[node.Name] = &pod
		}
	}
	return nil
}

// uncached returns a Reconciler that reads from the API server, for decisions that cannot be undone.
func (r *Reconciler) uncached() *Reconciler {
	return &Reconciler{Client: uncachedReads{Client: r.Client, live: r.Live}, Live: r.Live, Options: r.Options, Clock: r.Clock}
}

// uncachedReads is a Client whose reads go to the API server.
type uncachedReads struct {
	client.Client
	live client.Reader
}

func (f uncachedReads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return f.live.Get(ctx, key, into, options...)
}

func (f uncachedReads) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	options = slices.DeleteFunc(slices.Clone(options), func(o client.ListOption) bool { _, index := o.(client.MatchingFields); return index })
	return f.live.List(ctx, into, options...)
}
