package experiment

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"vignette.dev/vignette/operators/experiment/credentials"
	"vignette.dev/vignette/operators/experiment/render"
)

// ensureSecurity makes the certificates and the password of the experiment's brokers, once and before the first pod. The operator has no
// right to read Secrets: one that is there already is the one that it made before, as its name has the experiment's UID.
func (r *Reconciler) ensureSecurity(ctx context.Context, s *scope) (bool, error) {
	hosts, addresses := render.Secured(s.topology)
	if len(hosts) == 0 || len(s.pods) == len(s.topology.Nodes) {
		return false, nil
	}
	files, err := credentials.Make(s.experiment.Name, hosts, addresses, s.now)
	if err != nil {
		return true, err
	}
	switch err := r.Client.Create(ctx, render.Secret(s.experiment, files)); {
	case err == nil || apierrors.IsAlreadyExists(err):
		return false, nil
	case isQuotaRefusal(err):
		return true, r.backToQueue(ctx, s, err)
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		s.doom(ReasonSecretRefused, "the cluster refuses the Secret for certificates and passwords of brokers: %v", err)
		return false, nil
	default:
		return true, err
	}
}
