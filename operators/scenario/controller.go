// Package scenario is the controller of Scenarios: it reads the source once, says what it found and
// by which digest, and so lets experiments that refer to it start.
package scenario

import (
	"context"
	"crypto/sha256"
	"fmt"

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

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// +kubebuilder:rbac:groups=vignette.dev,resources=scenarios,verbs=get;list;watch
// +kubebuilder:rbac:groups=vignette.dev,resources=scenarios/status,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch

// Reasons of Ready.
const (
	ReasonRead              = "Read"
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	ReasonKeyNotFound       = "KeyNotFound"
	ReasonEmpty             = "Empty"
)

// Reconciler reads scenarios.
type Reconciler struct {
	Client client.Client
	// Live reads ConfigMaps, whose contents are not worth a cache.
	Live client.Reader
}

// Reconcile brings one scenario's status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var s v1alpha1.Scenario
	if err := r.Client.Get(ctx, request.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	source := s.Spec.Source
	var configMap *corev1.ConfigMap
	found := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: source.ConfigMap}, found)
	if err == nil {
		configMap = found
	} else if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	before := s.DeepCopy()
	digest, ready := Read(s.Spec, configMap)
	s.Status.Digest, s.Status.ObservedGeneration, ready.ObservedGeneration = digest, s.Generation, s.Generation
	meta.SetStatusCondition(&s.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, s.Status) {
		return ctrl.Result{}, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return ctrl.Result{}, client.IgnoreNotFound(r.Client.Status().Patch(ctx, &s, patch))
}

// Read the source: its digest, and the condition Ready in words.
func Read(spec v1alpha1.ScenarioSpec, configMap *corev1.ConfigMap) (digest string, ready metav1.Condition) {
	ready = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	if configMap == nil {
		ready.Reason, ready.Message = ReasonConfigMapNotFound, fmt.Sprintf("spec.source.configMap: there is no ConfigMap %q in this namespace", spec.Source.ConfigMap)
		return "", ready
	}
	content, found := []byte(configMap.Data[spec.Source.Key]), true
	if _, inText := configMap.Data[spec.Source.Key]; !inText {
		content, found = configMap.BinaryData[spec.Source.Key]
	}
	switch {
	case !found:
		ready.Reason, ready.Message = ReasonKeyNotFound, fmt.Sprintf("spec.source.key: ConfigMap %q has no key %q", configMap.Name, spec.Source.Key)
		return "", ready
	case len(content) == 0:
		ready.Reason, ready.Message = ReasonEmpty, fmt.Sprintf("key %q of ConfigMap %q is empty", spec.Source.Key, configMap.Name)
		return "", ready
	}
	ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, ReasonRead, fmt.Sprintf("%d bytes of %s", len(content), spec.Format)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(content)), ready
}

// SetupWithManager registers the controller. Of ConfigMaps only metadata is watched.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("scenario").
		For(&v1alpha1.Scenario{}).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.usersOf)).
		Complete(r)
}

func (r *Reconciler) usersOf(ctx context.Context, configMap client.Object) (requests []reconcile.Request) {
	var list v1alpha1.ScenarioList
	if err := r.Client.List(ctx, &list, client.InNamespace(configMap.GetNamespace())); err != nil {
		return nil
	}
	for _, s := range list.Items {
		if s.Spec.Source.ConfigMap == configMap.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&s)})
		}
	}
	return requests
}
