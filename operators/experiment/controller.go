// Package experiment is the controller of Experiments, from `kubectl apply` to the results. README.md
// describes the phases and what each of them guarantees.
package experiment

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/core/render"
	needs "vignette.dev/vignette/internal/core/requirements"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/runrecord"
	"vignette.dev/vignette/operators/experiment/scenarios"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/experiment/updates"
	"vignette.dev/vignette/operators/freshness"
)

// +kubebuilder:rbac:groups=vignette.dev,resources=experiments,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=vignette.dev,resources=experiments/status,verbs=get;patch
// +kubebuilder:rbac:groups=vignette.dev,resources=experiments/finalizers,verbs=update
// +kubebuilder:rbac:groups=vignette.dev,resources=livechanges;captures,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=vignette.dev,resources=livechanges/status;captures/status,verbs=get;patch
// +kubebuilder:rbac:groups=vignette.dev,resources=waveforms;scenarios,verbs=get;list;watch
// +kubebuilder:rbac:groups=vignette.dev,namespace=vignette-system,resources=radionetworks,verbs=get;list;watch;create;delete;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete;patch
// +kubebuilder:rbac:groups="",resources=nodes;resourcequotas;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=limitranges,verbs=list
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=servicecidrs,verbs=list
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=create
// +kubebuilder:rbac:groups="",resources=serviceaccounts,resourceNames=vignette-workflow,verbs=get;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=vignette-workflow,verbs=get;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=vignette-workflow,verbs=bind
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=argoproj.io,resources=workflows,verbs=get;list;watch;create;delete;patch;update
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=vignette-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=secrets;persistentvolumeclaims,verbs=get
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=get;create;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=vignette-system,resources=configmaps,verbs=list;create;delete
// +kubebuilder:rbac:groups=vignette.dev,resources=nodetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachineinstances,verbs=get;list;create;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,resourceNames=default,verbs=create
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get

// Options of the controller.
type Options struct {
	Render render.Options
	// StartLead is the minimum time from "every agent is ready" to T0. It is longer where the nodes started slowly.
	StartLead time.Duration
	// ChangeLead is the time from a manual change to its effect, in which every radio must receive it.
	ChangeLead time.Duration
	// ProvisioningDeadline is the time from an experiment's start slot to "every agent is ready", for up to 50 nodes.
	// Each further node adds 3 s.
	ProvisioningDeadline time.Duration
	// CleanupDeadline is the time after which a deletion ends even if objects are left.
	CleanupDeadline time.Duration
	// ClusterCIDRs are address ranges of the cluster that the Kubernetes API does not report.
	ClusterCIDRs []netip.Prefix
	// Version is the operator's version, for the run record.
	Version string
	// LookupHost finds the server's addresses.
	LookupHost func(ctx context.Context, host string) ([]string, error)
}

// DefaultOptions are the defaults of the manager's flags.
func DefaultOptions() Options {
	return Options{
		StartLead: needs.StartLead, ChangeLead: time.Second,
		ProvisioningDeadline: 5 * time.Minute, CleanupDeadline: time.Minute,
		LookupHost: net.DefaultResolver.LookupHost,
	}
}

// Reconciler takes experiments through their phases.
type Reconciler struct {
	// Client reads from caches, Live from the API server.
	Client client.Client
	Live   client.Reader
	Runs   runrecord.Runs
	// Scenarios has the compiled scenarios, whose antenna profiles EMANE needs as files, and on whose distances its slots depend.
	Scenarios scenarios.Store
	Recorder  record.EventRecorder
	Clock     clock.PassiveClock
	Options   Options
	// RunUpdates reports experiments whose state on the server changed. If it is nil, each experiment polls.
	RunUpdates updates.Source
	// KubernetesVersion returns the API server's version for the run record. It may be nil.
	KubernetesVersion func() (string, error)
	// Console returns the end of a container's log, for the last output of failed guests. It may be nil.
	Console nodes.Console

	written  freshness.Versions
	assemble sync.Once
	duties   duties
}

// stage is a part of a reconciliation. It returns true where later stages must wait for the next one.
type stage func(context.Context, *scope.Scope) (stop bool, err error)

// Reconcile runs the stages of one experiment and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	var e v1alpha1.Experiment
	// In a phase before the last write, the operator would delete a run's pods, or revert its plan.
	if err := freshness.Get(ctx, &r.written, r.Client, r.Live, request.NamespacedName, &e); apierrors.IsNotFound(err) {
		err := r.parts().live.ReportMissingExperiment(ctx, request.NamespacedName)
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
		return ctrl.Result{}, err
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if e.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(&e, v1alpha1.Finalizer) {
		return ctrl.Result{RequeueAfter: scope.ResyncInterval}, objects.IgnoreConflictOrNotFound(r.addFinalizer(ctx, &e))
	}
	s := &scope.Scope{Experiment: &e, Now: r.Clock.Now(), Options: r.Options.Render}
	before := e.DeepCopy()
	defer func() {
		patchErr := r.writeStatus(ctx, before, s)
		if apierrors.IsConflict(patchErr) { // the cache was stale: the next event has the newer object
			patchErr, result.RequeueAfter = nil, time.Second
		}
		err = errors.Join(err, patchErr)
	}()
	err = r.runStages(ctx, s)
	r.parts().forget(s)
	if apierrors.IsConflict(err) {
		err = nil
		s.RequeueAfter(200 * time.Millisecond)
	}
	s.EnsureRequeue()
	return ctrl.Result{RequeueAfter: s.RequeueIn}, err
}

func (r *Reconciler) runStages(ctx context.Context, s *scope.Scope) error {
	for _, stage := range r.parts().stages(s) {
		if stop, err := stage(ctx, s); stop || err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) addFinalizer(ctx context.Context, e *v1alpha1.Experiment) error {
	before := e.DeepCopy()
	controllerutil.AddFinalizer(e, v1alpha1.Finalizer)
	err := r.Client.Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		r.written.Record(e)
	}
	return err
}

// writeStatus writes the status if it changed. Events follow only then, because a conflicting write is repeated.
func (r *Reconciler) writeStatus(ctx context.Context, before *v1alpha1.Experiment, s *scope.Scope) error {
	if s.FinalizerRemoved {
		return nil
	}
	setSummaryConditions(s)
	if !equality.Semantic.DeepEqual(before.Status, s.Experiment.Status) {
		after := before.DeepCopy()
		after.Status = s.Experiment.Status
		// Without the lock a stale read could set T0 or leave a phase twice.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Status().Patch(ctx, after, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
		r.written.Record(after)
		log.FromContext(ctx).V(1).Info("status written", "phase", after.Status.Phase, "message", after.Status.Message)
	}
	for _, event := range s.Events {
		r.Recorder.Event(s.Experiment, event.Kind, event.Reason, event.Message)
	}
	return nil
}
