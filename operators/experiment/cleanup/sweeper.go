package cleanup

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Sweeper deletes RadioNetworks whose experiment is gone. Owner references do not work across namespaces, and users can
// remove a finalizer. It also ends the runs of deleted and failed experiments in the archive, and seals them.
type Sweeper struct {
	Client client.Client
	// Live reads from the API server, because a stale cache could delete the network of a running experiment.
	Live      client.Reader
	Namespace string
	Interval  time.Duration
	Archive   Archive
}

// Archive is the part of the server's API that the sweeper uses.
type Archive interface {
	planStore
	Runs(ctx context.Context, namespace, name string) ([]runapi.RunSummary, error)
	Seal(ctx context.Context, uid string, request runapi.SealRequest) (runapi.Manifest, error)
}

// NeedLeaderElection makes only one manager sweep.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start sweeps until the context ends.
func (w *Sweeper) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.Interval)
	defer ticker.Stop()
	for {
		if err := w.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "sweep of RadioNetworks")
		}
		if err := w.SweepArchive(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("ends of runs could not be recorded on the server; trying again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Sweep deletes all RadioNetworks without their experiment.
func (w *Sweeper) Sweep(ctx context.Context) error {
	var list v1alpha1.RadioNetworkList
	if err := w.Client.List(ctx, &list, client.InNamespace(w.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		network := &list.Items[i]
		exists, err := w.experimentExists(ctx, network)
		if exists {
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		log.FromContext(ctx).Info("deleting a RadioNetwork without its experiment", "name", network.Name)
		if err := w.Client.Delete(ctx, network, client.Preconditions{UID: ptr.To(network.UID)}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// SweepArchive ends archived runs whose experiment is gone or over: it records that they failed, unless they have ended, and
// seals their logs. Somebody may follow the logs until then.
func (w *Sweeper) SweepArchive(ctx context.Context) (failed error) {
	archived, err := w.Archive.Runs(ctx, "", "")
	if err != nil {
		return err
	}
	for _, run := range archived {
		if run.Phase != "" && !(run.Sealed && scope.Finished(run.Phase)) {
			failed = errors.Join(failed, w.endIfOver(ctx, run))
		}
	}
	return failed
}

// endIfOver ends an archived run whose experiment is gone or over.
func (w *Sweeper) endIfOver(ctx context.Context, run runapi.RunSummary) error {
	var e v1alpha1.Experiment
	err := w.Live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Name}, &e)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	why := "the experiment was deleted while the server could not be reached"
	if err == nil && string(e.UID) == run.UID {
		if !scope.Finished(e.Status.Phase) {
			return nil
		}
		why = e.Status.Message
	}
	if err := recordAsFailed(ctx, w.Archive, run.UID, why); err != nil || run.Sealed {
		return err
	}
	_, err = w.Archive.Seal(ctx, run.UID, runapi.SealRequest{})
	return err
}

// experimentExists reports whether a network's experiment exists. The cache is enough for a yes, but not for a no.
func (w *Sweeper) experimentExists(ctx context.Context, network *v1alpha1.RadioNetwork) (exists bool, err error) {
	reference := network.Spec.Experiment
	for _, reader := range []client.Reader{w.Client, w.Live} {
		var owner v1alpha1.Experiment
		err = reader.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, &owner)
		if err == nil && owner.UID == reference.UID {
			return true, nil
		}
	}
	return false, err
}
