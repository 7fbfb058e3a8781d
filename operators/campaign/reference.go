package campaign

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"vignette.dev/vignette/internal/core/decide"
	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/internal/reference"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// readReference reads the reference figures of a campaign from their ConfigMap. The problem says what is wrong with them.
func (r *Reconciler) readReference(ctx context.Context, s *scope) (problem string, err error) {
	c := s.campaign
	if c.Spec.Reference == nil || !needsReference(c) {
		return "", nil
	}
	var object corev1.ConfigMap
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.Reference.Ref}, &object)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("spec.reference.ref: there is no ConfigMap %s in namespace %s: create it, or correct the name", c.Spec.Reference.Ref, c.Namespace), nil
	}
	if err != nil {
		return "", err
	}
	plan, errs := matrix.Expand(c.Name, 1, &c.Spec)
	if len(errs) > 0 {
		return "", nil // the check of the points names them
	}
	var points []string
	for _, point := range plan.Points {
		points = append(points, point.Name)
	}
	figures, err := reference.OfConfigMap(c.Spec.Reference.Ref, c.Spec.Reference.Key, contentsOf(&object), points)
	if err != nil {
		return joinProblems([]string{"spec.reference: " + err.Error()}), nil
	}
	s.setReference(figures)
	return "", nil
}

// needsReference reports whether some run may still be created. A campaign that is over stays as it is, whatever happens to its ConfigMap.
func needsReference(c *v1alpha1.Campaign) bool {
	if c.Status.AcceptedGeneration != c.Generation || c.Spec.Schedule != nil || len(c.Status.Runs) == 0 {
		return true
	}
	for i := range c.Status.Runs {
		if run := &c.Status.Runs[i]; run.Phase == v1alpha1.RunPending || decide.IsActive(run) {
			return true
		}
	}
	return false
}

func contentsOf(object *corev1.ConfigMap) map[string][]byte {
	contents := map[string][]byte{}
	for key, text := range object.Data {
		contents[key] = []byte(text)
	}
	for key, binary := range object.BinaryData {
		contents[key] = binary
	}
	return contents
}

func (s *scope) setReference(figures []reference.Figure) {
	s.reference = map[string]runapi.Reference{}
	for _, f := range figures {
		of := s.reference[f.Run]
		of.Name = s.campaign.Spec.Reference.Ref
		of.Figures = append(of.Figures, runapi.ReferenceFigure{Group: f.Group, Metric: f.Metric, Value: f.Value, Note: f.Note})
		s.reference[f.Run] = of
	}
}

// addReference adds the reference figures of a point to an experiment, whose run record then has them.
func (s *scope) addReference(object *unstructured.Unstructured, point string) {
	of, found := s.reference[point]
	if !found {
		return
	}
	text, err := json.Marshal(of)
	if err != nil {
		return // numbers of a file are finite: it cannot fail
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationReference] = string(text)
	object.SetAnnotations(annotations)
}

// campaignsReferringTo returns the campaigns whose reference figures a ConfigMap has.
func (r *Reconciler) campaignsReferringTo(ctx context.Context, configMap client.Object) (requests []reconcile.Request) {
	var list v1alpha1.CampaignList
	if err := r.Client.List(ctx, &list, client.InNamespace(configMap.GetNamespace())); err != nil {
		return nil
	}
	for i := range list.Items {
		if of := list.Items[i].Spec.Reference; of != nil && of.Ref == configMap.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
