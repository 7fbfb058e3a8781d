// Package campaign is the controller of Campaigns. It runs an experiment once for every point of a matrix. README.md
// describes its guarantees.
package campaign

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"vignette.dev/vignette/internal/core/decide"
	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/freshness"
	"vignette.dev/vignette/operators/jobs"
)

// +kubebuilder:rbac:groups=vignette.dev,resources=campaigns,verbs=get;list;watch
// +kubebuilder:rbac:groups=vignette.dev,resources=campaigns/status,verbs=get;patch
// +kubebuilder:rbac:groups=vignette.dev,resources=campaigns/finalizers,verbs=update
// +kubebuilder:rbac:groups=vignette.dev,resources=experiments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch

// Archive is the part of the server's API that the controller uses.
type Archive interface {
	State(ctx context.Context, uid string) (runapi.State, error)
	Compare(ctx context.Context, uids []string, how runs.Comparison) (io.ReadCloser, error)
}

// Reconciler takes campaigns through their rounds.
type Reconciler struct {
	// Client reads from caches, Live from the API server.
	Client   client.Client
	Live     client.Reader
	Archive  Archive
	Recorder record.EventRecorder
	Clock    clock.PassiveClock

	written freshness.Versions
	checks  checkTimes
	// comparisons are made beside the reconciler, as each takes minutes. Their results are why runs could not be compared.
	comparisons jobs.Jobs[error]
}

// scope is the state of one reconciliation. campaign.Status is written once, at the end.
type scope struct {
	campaign *v1alpha1.Campaign
	now      time.Time
	observed decide.Observed
	events   []decide.Event
	// reference figures by point, where the campaign has some.
	reference map[string]runapi.Reference
	// plan of the matrix, once it is needed.
	plan *matrix.Plan
	// requeueIn is the time to the next reconciliation, 0 for none.
	requeueIn time.Duration
}

// requeueAfter requests another reconciliation after d at the latest.
func (s *scope) requeueAfter(d time.Duration) {
	if d = max(d, 10*time.Millisecond); s.requeueIn == 0 || d < s.requeueIn {
		s.requeueIn = d
	}
}

// Reconcile does one step of a campaign. The decisions of a step are written first, and executed in the next reconciliation,
// once they have been read again.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	var c v1alpha1.Campaign
	// An older state than that of the last write, without its runs, would create them again.
	if err := freshness.Get(ctx, &r.written, r.Client, r.Live, request.NamespacedName, &c); err != nil {
		if apierrors.IsNotFound(err) {
			r.comparisons.Forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its experiments are deleted with it
	}
	s := &scope{campaign: &c, now: r.Clock.Now()}
	before := c.DeepCopy()
	err = r.step(ctx, s, before)
	patchErr := r.writeStatus(ctx, before, s)
	if apierrors.IsConflict(patchErr) { // the cache was stale: the next event has the newer object
		patchErr = nil
		s.requeueAfter(time.Second)
	}
	return ctrl.Result{RequeueAfter: s.requeueIn}, errors.Join(err, patchErr)
}

func (r *Reconciler) step(ctx context.Context, s *scope, before *v1alpha1.Campaign) error {
	if err := r.observe(ctx, s); err != nil {
		return err
	}
	accepted, err := r.accept(ctx, s)
	if err != nil {
		return err
	}
	actions, err := decide.Step(s.campaign, accepted, s.observed, s.now)
	s.events = append(s.events, actions.Events...)
	if actions.RequeueAfter > 0 {
		s.requeueAfter(actions.RequeueAfter)
	}
	if err != nil {
		s.reject(ReasonInvalid, err.Error())
	}
	s.setSummaryConditions()
	if !equality.Semantic.DeepEqual(before.Status, s.campaign.Status) {
		s.requeueAfter(0) // to execute it
		return nil
	}
	return r.execute(ctx, s, actions)
}

// writeStatus writes the status if it changed, and only then the events.
func (r *Reconciler) writeStatus(ctx context.Context, before *v1alpha1.Campaign, s *scope) error {
	if equality.Semantic.DeepEqual(before.Status, s.campaign.Status) {
		return nil
	}
	after := before.DeepCopy()
	after.Status = s.campaign.Status
	// Without the lock a stale read could start a run twice.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, after, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.written.Record(after)
	log.FromContext(ctx).V(1).Info("status written", "phase", after.Status.Phase, "message", after.Status.Message)
	for _, note := range s.events {
		kind := corev1.EventTypeNormal
		if note.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Event(s.campaign, kind, note.Reason, note.Message)
	}
	return nil
}

// SetupWithManager registers the controller and the sources of its reconciliations.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, concurrent int) error {
	if err := manager.Add(&r.comparisons); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		Named("campaign").
		For(&v1alpha1.Campaign{}).
		Owns(&v1alpha1.Experiment{}).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.campaignsReferringTo)).
		WatchesRawSource(r.comparisons.Source()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, 15*time.Second),
		}).
		Complete(r)
}
