package experiment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/experiment/credentials"
	"vignette.dev/vignette/operators/experiment/render"
)

// ensureSecurity makes the certificates and the password of the experiment's brokers, once and before the first pod. The operator reads no
// Secret: one that is there already is the one that it made before, as its name has the experiment's UID.
func (r *Reconciler) ensureSecurity(ctx context.Context, s *scope) (bool, error) {
	hosts, addresses := render.SecuredBrokers(s.topology)
	if len(hosts) == 0 || len(s.pods) == len(s.topology.Nodes) {
		return false, nil
	}
	files, err := credentials.Make(s.experiment.Name, hosts, addresses, s.now)
	if err != nil {
		return true, err
	}
	brokers := render.Secret(s.experiment, files)
	if render.MachinesWithClients(s.renderInput()) {
		if stop, err := r.ensureClientSecurity(ctx, s, brokers, files); stop || err != nil || s.justFailed {
			return stop, err
		}
	}
	err = r.Client.Create(ctx, brokers)
	return r.handleSecretError(ctx, s, client.IgnoreAlreadyExists(err))
}

// ensureClientSecurity makes the Secret of virtual machines with clients: a machine's disk has all of a Secret, and that of brokers has their key. It
// comes before that, with the same authority and password. Of an operator that ended between the two nobody can read what the first has, so that
// another one is made then: the last is the brokers'.
func (r *Reconciler) ensureClientSecurity(ctx context.Context, s *scope, brokers *corev1.Secret, files map[string][]byte) (stop bool, err error) {
	for n := 0; ; n++ {
		next := render.ClientSecret(s.experiment, n, files)
		there, err := r.secretExists(ctx, next)
		if err != nil {
			return r.handleSecretError(ctx, s, err)
		}
		if there {
			s.clientSecurity = next.Name
			continue
		}
		done, err := r.secretExists(ctx, brokers)
		switch {
		case err != nil:
		case !done:
			s.clientSecurity, err = next.Name, r.Client.Create(ctx, next)
		case s.clientSecurity == "":
			s.fail(ReasonReferenceLost, "Secret %s, with what clients of brokers with security need, is gone: make the experiment anew", next.Name)
		}
		return r.handleSecretError(ctx, s, err)
	}
}

// secretExists tells whether the API server would refuse to make a Secret for the reason that there is one: it says nothing of what that has.
func (r *Reconciler) secretExists(ctx context.Context, secret *corev1.Secret) (bool, error) {
	err := r.Client.Create(ctx, secret.DeepCopy(), client.DryRunAll)
	return apierrors.IsAlreadyExists(err), client.IgnoreAlreadyExists(err)
}

// checkSecret ends what waits for the brokers' Secret in vain: somebody has deleted it, and nodes that have it would not know a new one's password.
func (r *Reconciler) checkSecret(ctx context.Context, s *scope) {
	if hosts, _ := render.SecuredBrokers(s.topology); len(hosts) == 0 || len(s.pods) < len(s.topology.Nodes) {
		return
	}
	secret := render.Secret(s.experiment, nil)
	if there, err := r.secretExists(ctx, secret); err == nil && !there {
		s.fail(ReasonReferenceLost, "Secret %s, with certificates and passwords of brokers, was deleted while the nodes came up: make the experiment anew", secret.Name)
	}
}

// handleSecretError judges what came of making a Secret.
func (r *Reconciler) handleSecretError(ctx context.Context, s *scope, err error) (stop bool, _ error) {
	switch {
	case err == nil:
		return false, nil
	case isQuotaRefusal(err):
		return true, r.backToQueue(ctx, s, err)
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		s.fail(ReasonSecretRefused, "the cluster refuses the Secret for certificates and passwords of brokers: %v", err)
		return false, nil
	default:
		return true, err
	}
}
