// Package scenario is the controller of Scenarios. It compiles each of them once, stores the result on the server by its
// digest, and writes its statistics or errors into the status. Experiments with the scenario can then start.
package scenario

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/jobs"
	"vignette.dev/vignette/operators/kstatus"
)

// +kubebuilder:rbac:groups=vignette.dev,resources=scenarios,verbs=get;list;watch
// +kubebuilder:rbac:groups=vignette.dev,resources=scenarios/status,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch

// Reasons of Ready.
const (
	ReasonCompiled          = "Compiled"
	ReasonCompiling         = "Compiling"
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	ReasonKeyNotFound       = "KeyNotFound"
	ReasonMalformed         = "Malformed"
	ReasonInvalid           = "Invalid"
	ReasonTooLarge          = "TooLarge"
	ReasonNotInStore        = "NotInStore"
	ReasonStoreUnavailable  = "StoreUnavailable"
	ReasonStoreFull         = "StoreFull"
)

// storeCheckInterval is the time between two checks that the store still has a scenario. A check also marks it as used.
const storeCheckInterval = 10 * time.Minute

// storeTimeout bounds a question to the store. One worker serves all scenarios.
const storeTimeout = 15 * time.Second

// retryInterval is the time from a failure of the store to the next compilation.
const retryInterval = 30 * time.Second

// missingCheckInterval is the time between two checks for a scenario that a user has yet to push.
const missingCheckInterval = 15 * time.Second

// Store is the server's store of compiled scenarios.
type Store interface {
	// The namespaces are those of the Scenarios for which it is asked: each may have half of the store.
	HasScenarioFor(ctx context.Context, namespace, digest string) (bool, error)
	Scenario(ctx context.Context, digest string) (io.ReadCloser, error)
	// HasScenarioRoom reports whether the store has a scenario, or room for it.
	HasScenarioRoom(ctx context.Context, namespace, digest string, size int64) (bool, error)
	PutScenarioFor(ctx context.Context, namespace, digest string, content io.Reader) error
}

// Reconciler compiles scenarios.
type Reconciler struct {
	Client client.Client
	// Live reads ConfigMaps, whose contents are not cached. Metadata caches their metadata.
	Live, Metadata client.Reader
	Store          Store
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	jobs        jobs.Jobs[compileResult]
	storeChecks storeChecks
}

// Reconcile updates one scenario's status. Compilation runs in jobs.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var s v1alpha1.Scenario
	if err := r.Client.Get(ctx, request.NamespacedName, &s); err != nil {
		if apierrors.IsNotFound(err) {
			r.jobs.Forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	from, err := r.inputDigest(ctx, &s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.Status.CompiledFrom == from {
		if err := r.observeGeneration(ctx, &s); err != nil {
			return ctrl.Result{}, err
		}
		lost, err := r.storeChanged(ctx, &s)
		if err != nil || !lost {
			return ctrl.Result{RequeueAfter: r.nextStoreCheck(&s)}, err
		}
		r.jobs.Forget(request.NamespacedName)
	}
	out, finished := r.jobs.Result(request.NamespacedName, from)
	if finished && out.retry != nil {
		wait, err := r.untilRetry(ctx, &s, out)
		if err != nil {
			return ctrl.Result{}, err
		}
		if wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, r.write(ctx, &s, v1alpha1.ScenarioStatus{}, out.ready)
		}
		r.jobs.Forget(request.NamespacedName)
		finished = false
	}
	if !finished {
		spec, namespace := *s.Spec.DeepCopy(), s.Namespace
		r.jobs.Begin(request.NamespacedName, from, func(ctx context.Context) compileResult { return r.compile(ctx, namespace, spec) })
		return ctrl.Result{}, r.write(ctx, &s, v1alpha1.ScenarioStatus{}, condition(metav1.ConditionUnknown, ReasonCompiling, "its sources are being read"))
	}
	status := v1alpha1.ScenarioStatus{Digest: out.digest, Statistics: out.statistics, CompiledFrom: from}
	if err := r.write(ctx, &s, status, out.ready); err != nil {
		return ctrl.Result{}, err
	}
	// The job stays until the inputs change, because a stale read would start it again.
	r.storeChecks.checked(s.UID, r.now())
	return ctrl.Result{RequeueAfter: r.nextStoreCheck(&s)}, nil
}

// untilRetry is the time until a scenario that could not be stored is compiled again. If the store is full, that is once it has room.
func (r *Reconciler) untilRetry(ctx context.Context, s *v1alpha1.Scenario, out compileResult) (time.Duration, error) {
	if out.full == nil {
		return max(retryInterval-r.now().Sub(out.at), 0), nil
	}
	since := out.at
	if checked := r.storeChecks.checkedAt(s.UID); checked.After(since) {
		since = checked
	}
	if rest := storeCheckInterval - r.now().Sub(since); rest > 0 {
		return rest, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	room, err := r.Store.HasScenarioRoom(ctx, s.Namespace, out.full.digest, out.full.bytes)
	if err != nil || room {
		return 0, err
	}
	r.storeChecks.checked(s.UID, r.now())
	return storeCheckInterval, nil
}

func (r *Reconciler) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// nextStoreCheck is the time until the next check of the store.
func (r *Reconciler) nextStoreCheck(s *v1alpha1.Scenario) time.Duration {
	if isMissing(s) {
		return missingCheckInterval
	}
	return storeCheckInterval
}

// isMissing reports whether a user has yet to push the compiled scenario.
func isMissing(s *v1alpha1.Scenario) bool {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == ReasonNotInStore
}

// storeChanged reports whether the store has lost the compiled scenario, or has a missing one now.
func (r *Reconciler) storeChanged(ctx context.Context, s *v1alpha1.Scenario) (bool, error) {
	ready := meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)
	if !ready && !isMissing(s) {
		return false, nil // the error is in the scenario
	}
	if r.now().Sub(r.storeChecks.checkedAt(s.UID)) < r.nextStoreCheck(s) {
		return false, nil
	}
	digest := cmp.Or(s.Spec.Compiled, s.Status.Digest)
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	has, err := r.Store.HasScenarioFor(ctx, s.Namespace, digest)
	if err == nil {
		r.storeChecks.checked(s.UID, r.now())
	}
	return has != ready, err
}

// observeGeneration writes that the status holds for a new generation, as only fields such as the description changed.
func (r *Reconciler) observeGeneration(ctx context.Context, s *v1alpha1.Scenario) error {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || s.Status.ObservedGeneration == s.Generation {
		return nil
	}
	return r.write(ctx, s, s.Status, *ready)
}

// write writes the status if it has changed.
func (r *Reconciler) write(ctx context.Context, s *v1alpha1.Scenario, status v1alpha1.ScenarioStatus, ready metav1.Condition) error {
	before := s.DeepCopy()
	status.Conditions, status.ObservedGeneration = s.Status.Conditions, s.Generation
	s.Status = status
	state := map[metav1.ConditionStatus]kstatus.State{
		metav1.ConditionTrue: kstatus.Current, metav1.ConditionFalse: kstatus.Failed, metav1.ConditionUnknown: kstatus.InProgress,
	}[ready.Status]
	kstatus.Set(&s.Status.Conditions, state, ready.Reason, ready.Message, s.Generation, r.now())
	if equality.Semantic.DeepEqual(before.Status, s.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, s, patch))
}

// condition is the Ready condition of a scenario: True if it is valid, False if not, Unknown before it is compiled.
func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: wording.Shorten(message, 4096)}
}

// inputDigest is a digest of a scenario's spec and the versions of its ConfigMaps. A new digest needs a compilation.
func (r *Reconciler) inputDigest(ctx context.Context, s *v1alpha1.Scenario) (string, error) {
	spec := s.Spec.DeepCopy()
	spec.Description = ""
	versions := map[string]string{}
	for _, file := range spec.FilesAndTables() {
		if _, known := versions[file.ConfigMap]; known {
			continue
		}
		configMap := &metav1.PartialObjectMetadata{}
		configMap.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := r.Metadata.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: file.ConfigMap}, configMap)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		versions[file.ConfigMap] = configMap.ResourceVersion // empty if the ConfigMap does not exist
	}
	text, err := json.Marshal(struct {
		Spec     *v1alpha1.ScenarioSpec
		Versions map[string]string
	}{spec, versions})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

// SetupWithManager registers the controller. It watches only the metadata of ConfigMaps.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	if err := manager.Add(&r.jobs); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		Named("scenario").
		For(&v1alpha1.Scenario{}).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.scenariosUsing)).
		WatchesRawSource(r.jobs.Source()).
		Complete(r)
}

func (r *Reconciler) scenariosUsing(ctx context.Context, configMap client.Object) (requests []reconcile.Request) {
	var list v1alpha1.ScenarioList
	if err := r.Client.List(ctx, &list, client.InNamespace(configMap.GetNamespace())); err != nil {
		return nil
	}
	for i := range list.Items {
		for _, file := range list.Items[i].Spec.FilesAndTables() {
			if file.ConfigMap == configMap.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
				break
			}
		}
	}
	return requests
}

func ready(statistics *v1alpha1.ScenarioStatistics, warnings []string) metav1.Condition {
	message := fmt.Sprintf("%d platforms for %s", statistics.Platforms, statistics.Duration)
	for _, warning := range warnings {
		message += "; " + warning
	}
	return condition(metav1.ConditionTrue, ReasonCompiled, message)
}
