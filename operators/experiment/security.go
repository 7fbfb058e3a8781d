package experiment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/experiment/credentials"
	"vignette.dev/vignette/operators/experiment/render"
)

// ensureSecurity creates the certificates and the password of the experiment's brokers, once and before the first pod. The
// operator cannot read Secrets. An existing one must be its own, because the name contains the experiment's UID.
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

// ensureClientSecurity creates the Secret of virtual machines with clients. A machine's disk has all keys of a Secret, and
// the brokers' Secret has their private key. It is created before that, with the same authority and password. An operator
// that ended in between leaves one that nobody can read, so the next creates another; the last one matches the brokers'.
func (r *Reconciler) ensureClientSecurity(ctx context.Context, s *scope, brokers *corev1.Secret, files map[string][]byte) (stop bool, err error) {
	for n := 0; ; n++ {
		next := render.ClientSecret(s.experiment, n, files)
		exists, err := r.secretExists(ctx, next)
		if err != nil {
			return r.handleSecretError(ctx, s, err)
		}
		if exists {
			s.clientSecurity = next.Name
			continue
		}
		done, err := r.secretExists(ctx, brokers)
		switch {
		case err != nil:
		case !done:
			s.clientSecurity, err = next.Name, r.Client.Create(ctx, next)
		case s.clientSecurity == "":
			s.fail(ReasonReferenceLost, "Secret %s, which clients of brokers with security need, was deleted: create the experiment again", next.Name)
		}
		return r.handleSecretError(ctx, s, err)
	}
}

// secretExists reports whether a Secret exists. The operator cannot read Secrets, so it tries to create one without effect.
func (r *Reconciler) secretExists(ctx context.Context, secret *corev1.Secret) (bool, error) {
	err := r.Client.Create(ctx, secret.DeepCopy(), client.DryRunAll)
	return apierrors.IsAlreadyExists(err), client.IgnoreAlreadyExists(err)
}

// checkSecret fails an experiment whose brokers' Secret was deleted. A new one would have another password than that of
// the nodes that have started.
func (r *Reconciler) checkSecret(ctx context.Context, s *scope) {
	if hosts, _ := render.SecuredBrokers(s.topology); len(hosts) == 0 || len(s.pods) < len(s.topology.Nodes) {
		return
	}
	secret := render.Secret(s.experiment, nil)
	if exists, err := r.secretExists(ctx, secret); err == nil && !exists {
		s.fail(ReasonReferenceLost, "Secret %s, with certificates and passwords of brokers, was deleted while the nodes started: create the experiment again", secret.Name)
	}
}

// handleSecretError handles the result of creating a Secret.
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
