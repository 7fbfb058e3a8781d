package render

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// WorkflowKind of Argo Workflows.
var WorkflowKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}

// LabelWorkflow is Argo's label of a workflow's pods. The workflow has the experiment's name.
const LabelWorkflow = "workflows.argoproj.io/workflow"

// workflowOverhead is how long a workflow may take besides the run: for its start, and for collecting and analysing.
const workflowOverhead = 24 * time.Hour

// liveClusterDeadline is the deadline of a live cluster's workflow. It is longer than any use, but fits the 32 bits of a pod's
// deadline.
const liveClusterDeadline = 10 * 365 * 24 * time.Hour

// Workflow is the run's Argo Workflow. The operator resumes its suspended steps.
func Workflow(in Input) *unstructured.Unstructured {
	e := in.Experiment
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(WorkflowKind)
	w.SetName(e.Name)
	w.SetNamespace(e.Namespace)
	w.SetLabels(labels(e))
	w.SetOwnerReferences([]metav1.OwnerReference{Owner(e)})
	w.Object["spec"] = map[string]any{
		"workflowTemplateRef":   map[string]any{"name": WorkflowTemplate, "clusterScope": true},
		"serviceAccountName":    WorkflowServiceAccount,
		"activeDeadlineSeconds": int64(workflowDeadline(&e.Spec).Seconds()),
		"arguments": map[string]any{"parameters": []any{
			parameter("run-uid", string(e.UID)),
			parameter("server-url", in.Options.ServerURL),
			parameter("server-image", in.Options.ServerImage),
			parameter("analysis-image", in.Options.AnalysisImage),
		}},
		"podMetadata": map[string]any{"labels": map[string]any{v1alpha1.LabelExperiment: e.Name}},
	}
	return w
}

func workflowDeadline(spec *v1alpha1.ExperimentSpec) time.Duration {
	if spec.Duration == "" {
		return liveClusterDeadline
	}
	return spec.Duration.Std() + spec.Drain.Max.Std() + workflowOverhead
}

func parameter(name, value string) map[string]any {
	return map[string]any{"name": name, "value": value}
}

// ServiceAccount is that of the workflow's pods. All experiments of a namespace share and own it, so that it is deleted with
// the last of them. Kubernetes ignores Secrets to pull with that the namespace does not have.
func ServiceAccount(e *v1alpha1.Experiment, pullSecrets []corev1.LocalObjectReference) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: sharedMeta(e), ImagePullSecrets: pullSecrets}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return account
}

// RoleBinding lets the workflow's pods report to Argo.
func RoleBinding(e *v1alpha1.Experiment) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: sharedMeta(e),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: WorkflowServiceAccount},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: WorkflowServiceAccount, Namespace: e.Namespace}},
	}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	return binding
}

func sharedMeta(e *v1alpha1.Experiment) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: WorkflowServiceAccount, Namespace: e.Namespace, Labels: map[string]string{managedBy: ManagedByValue},
		OwnerReferences: []metav1.OwnerReference{SharedOwner(e)},
	}
}

// SharedOwner is one of several owners.
func SharedOwner(e *v1alpha1.Experiment) metav1.OwnerReference {
	owner := Owner(e)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
	return owner
}
