// Package secrets creates the Secrets with certificates and passwords of an experiment's brokers, once in a run.
package secrets

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/credentials"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Secrets of brokers.
type Secrets struct {
	Objects *objects.Objects
}

// Ensure creates the certificates and the password of the experiment's brokers, once and before the first pod. An existing
// Secret must be its own, because the name contains the experiment's UID.
func (k *Secrets) Ensure(ctx context.Context, s *scope.Scope) (bool, error) {
	hosts, addresses := render.SecuredBrokers(s.Topology)
	if len(hosts) == 0 || len(s.Pods) == len(s.Topology.Nodes) {
		return false, nil
	}
	files, err := credentials.Make(s.Experiment.Name, hosts, addresses, s.Now)
	if err != nil {
		return true, err
	}
	brokers := render.Secret(s.Experiment, files)
	if render.MachinesWithClients(s.RenderInput()) {
		if stop, err := k.ensureForClients(ctx, s, brokers, files); stop || err != nil || s.JustFailed {
			return stop, err
		}
	}
	err = k.Objects.Create(ctx, brokers)
	return k.handle(s, client.IgnoreAlreadyExists(err))
}

// ensureForClients creates the Secret of virtual machines with clients. A machine's disk has all keys of a Secret, and
// the brokers' Secret has their private key. It is created before that, with the same authority and password. An operator
// that ended in between leaves one that nobody can read, so the next creates another; the last one matches the brokers'.
func (k *Secrets) ensureForClients(ctx context.Context, s *scope.Scope, brokers *corev1.Secret, files map[string][]byte) (stop bool, err error) {
	for n := 0; ; n++ {
		next := render.ClientSecret(s.Experiment, n, files)
		found, err := k.Objects.Exists(ctx, next)
		if err != nil {
			return k.handle(s, err)
		}
		if found {
			s.ClientSecurity = next.Name
			continue
		}
		done, err := k.Objects.Exists(ctx, brokers)
		switch {
		case err != nil:
		case !done:
			s.ClientSecurity, err = next.Name, k.Objects.Client.Create(ctx, next)
		case s.ClientSecurity == "":
			s.Fail(scope.ReasonReferenceLost, "Secret %s, which clients of brokers with security need, was deleted: create the experiment again", next.Name)
		}
		return k.handle(s, err)
	}
}

// Check fails an experiment whose brokers' Secret was deleted. A new one would have another password than that of
// the nodes that have started.
func (k *Secrets) Check(ctx context.Context, s *scope.Scope) {
	if hosts, _ := render.SecuredBrokers(s.Topology); len(hosts) == 0 || len(s.Pods) < len(s.Topology.Nodes) {
		return
	}
	secret := render.Secret(s.Experiment, nil)
	if found, err := k.Objects.Exists(ctx, secret); err == nil && !found {
		s.Fail(scope.ReasonReferenceLost, "Secret %s, with certificates and passwords of brokers, was deleted while the nodes started: create the experiment again", secret.Name)
	}
}

// handle handles the result of creating a Secret.
func (k *Secrets) handle(s *scope.Scope, err error) (stop bool, _ error) {
	return objects.HandleCreation(s, err, scope.ReasonSecretRefused, "the Secret for certificates and passwords of brokers")
}
