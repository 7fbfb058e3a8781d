// Package objects finds an experiment's objects by its UID, in caches or on the API server, and deletes exactly what was read.
package objects

import (
	"context"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Objects finds an experiment's objects by its UID, and deletes them. Names and labels alone prove nothing, because users
// can set them.
type Objects struct {
	// Client reads from caches, Live from the API server.
	Client client.Client
	Live   client.Reader
	// Namespace of the platform, where RadioNetworks are.
	Namespace string
}

// Uncached reads from the API server, for decisions that cannot be undone.
func (o *Objects) Uncached() *Objects {
	return &Objects{Client: UncachedReads{Client: o.Client, Live: o.Live}, Live: o.Live, Namespace: o.Namespace}
}

// UncachedReads is a Client whose reads go to the API server.
type UncachedReads struct {
	client.Client
	Live client.Reader
}

// Get asks the API server.
func (f UncachedReads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return f.Live.Get(ctx, key, into, options...)
}

// List asks the API server, which has no indexes.
func (f UncachedReads) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	options = slices.DeleteFunc(slices.Clone(options), func(o client.ListOption) bool { _, index := o.(client.MatchingFields); return index })
	return f.Live.List(ctx, into, options...)
}

// UIDField indexes objects by their experiments' UIDs, so that a list does not scan the pods of all experiments.
const UIDField = "metadata.labels." + v1alpha1.LabelExperimentUID

// UIDIndex is the value of UIDField.
func UIDIndex(object client.Object) []string {
	return []string{object.GetLabels()[v1alpha1.LabelExperimentUID]}
}

// SelectOwnedBy selects the objects whose label has the experiment's UID. The index is for caches, the label for the API server.
func SelectOwnedBy(e *v1alpha1.Experiment, namespace string) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(e.UID)}, client.MatchingFields{UIDField: string(e.UID)},
	}
}

// RadioNetworks returns the experiment's RadioNetworks, selected by its UID.
func (o *Objects) RadioNetworks(ctx context.Context, s *scope.Scope) ([]v1alpha1.RadioNetwork, error) {
	var list v1alpha1.RadioNetworkList
	err := o.Client.List(ctx, &list, SelectOwnedBy(s.Experiment, o.Namespace)...)
	return slices.DeleteFunc(list.Items, func(n v1alpha1.RadioNetwork) bool { return n.Spec.Experiment.UID != s.Experiment.UID }), err
}

// EMANEPods are the EMANE pods of the experiment's networks, by name, found by the UIDs of their owners.
func (o *Objects) EMANEPods(ctx context.Context, s *scope.Scope, networks []v1alpha1.RadioNetwork) (map[string]*corev1.Pod, error) {
	if !s.UsesEMANE() {
		return nil, nil
	}
	var list corev1.PodList
	err := o.Client.List(ctx, &list, SelectOwnedBy(s.Experiment, o.Namespace)...)
	found := map[string]*corev1.Pod{}
	for i := range list.Items {
		if pod := &list.Items[i]; OwnedByAny(pod, networks) {
			found[pod.Name] = pod
		}
	}
	return found, err
}

// OwnedByAny reports whether one of the networks owns an object.
func OwnedByAny(object metav1.Object, networks []v1alpha1.RadioNetwork) bool {
	return slices.ContainsFunc(networks, func(n v1alpha1.RadioNetwork) bool { return metav1.IsControlledBy(object, &n) })
}

// Attachments returns the experiment's NetworkAttachmentDefinitions, by their owner's UID.
func (o *Objects) Attachments(ctx context.Context, s *scope.Scope) ([]nadv1.NetworkAttachmentDefinition, error) {
	var list nadv1.NetworkAttachmentDefinitionList
	err := o.Client.List(ctx, &list, SelectOwnedBy(s.Experiment, s.Experiment.Namespace)...)
	var owned []nadv1.NetworkAttachmentDefinition
	for _, item := range list.Items {
		if metav1.IsControlledBy(&item, s.Experiment) {
			owned = append(owned, item)
		}
	}
	return owned, err
}

// Create creates an object. For one that exists the error is AlreadyExists, even where its quota is used up: an API server checks
// that first.
func (o *Objects) Create(ctx context.Context, object client.Object) error {
	err := o.Client.Create(ctx, object)
	if !IsQuotaRefusal(err) {
		return err
	}
	if found, _ := o.Exists(ctx, object); found {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
	}
	return err
}

// Exists reports whether there is an object of this kind and name. It reads only metadata, so never a Secret's content.
func (o *Objects) Exists(ctx context.Context, object client.Object) (bool, error) {
	kind, err := apiutil.GVKForObject(object, o.Client.Scheme())
	if err != nil {
		return false, err
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kind)
	err = o.Live.Get(ctx, client.ObjectKeyFromObject(object), found)
	return err == nil, client.IgnoreNotFound(err)
}

// Delete deletes exactly the object that was read, unless it is being deleted already.
func (o *Objects) Delete(ctx context.Context, object client.Object) error {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	err := o.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
	if apierrors.IsConflict(err) { // another object has its name now, so this one is gone
		return nil
	}
	return client.IgnoreNotFound(err)
}

// IgnoreConflictOrNotFound returns nil for the error of a write to an object that has changed or is gone.
func IgnoreConflictOrNotFound(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// HandleCreation handles the result of creating what no node starts without. It returns stop if later steps must wait. A
// policy of the cluster may refuse by any of these errors.
func HandleCreation(s *scope.Scope, err error, reason, what string) (stop bool, _ error) {
	switch {
	case err == nil:
		return false, nil
	case IsQuotaRefusal(err):
		s.Setback = &scope.Setback{Err: err}
		return true, nil
	case IsRefusal(err):
		s.Fail(reason, "the cluster refuses %s: %v", what, err)
		return true, nil
	default:
		return true, err
	}
}

// IsRefusal reports whether the API server, or a policy of the cluster, does not take an object.
func IsRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// IsQuotaRefusal reports whether a quota is exceeded. The quota plugin's "must specify limits" is not about room.
func IsQuotaRefusal(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
