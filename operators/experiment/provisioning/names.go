package provisioning

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// wanted is what an object is for, such as network wan.
type wanted struct{ kind, part, name string }

// awaitName waits until another's object with the name is gone. That of an experiment under way stays, and the run fails.
func (p *Provisioner) awaitName(ctx context.Context, s *scope.Scope, existing client.Object, want wanted) (stop bool, err error) {
	user, err := p.userOf(ctx, s, existing)
	if err != nil {
		return true, err
	}
	object := want.kind + " " + existing.GetName()
	if user != "" {
		s.Fail(scope.ReasonNameUsed, "%s %s: the name of its %s is in use by experiment %s: rename the %s, or wait until that experiment is over",
			want.part, want.name, object, user, want.part)
		return true, nil
	}
	s.Experiment.Status.Message = fmt.Sprintf("waiting for the deletion of %s, which belongs to somebody else", object)
	s.RequeueAfter(2 * scope.PollInterval)
	return true, nil
}

// userOf is the name of the experiment under way that an object is for; empty for none.
func (p *Provisioner) userOf(ctx context.Context, s *scope.Scope, existing client.Object) (string, error) {
	owner := metav1.GetControllerOf(existing)
	if owner == nil || owner.Kind != "Experiment" || owner.Name == s.Experiment.Name || !existing.GetDeletionTimestamp().IsZero() {
		return "", nil
	}
	other := &v1alpha1.Experiment{}
	err := p.Objects.Live.Get(ctx, client.ObjectKey{Namespace: existing.GetNamespace(), Name: owner.Name}, other)
	if err != nil || other.UID != owner.UID || !keepsItsObjects(other) {
		return "", client.IgnoreNotFound(err)
	}
	return other.Name, nil
}

// keepsItsObjects reports whether an experiment's nodes and networks stay for now.
func keepsItsObjects(e *v1alpha1.Experiment) bool {
	switch e.Status.Phase {
	case v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting, v1alpha1.PhaseAnalysing:
		return e.DeletionTimestamp.IsZero()
	}
	return false
}
