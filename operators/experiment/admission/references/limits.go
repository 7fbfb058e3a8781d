package references

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/experiment/scope"
)

// CheckLimits finds quotas of limits that nothing sets for all containers. Kubernetes refuses pods with a container without
// such a limit. The platform's own containers have none, so a LimitRange must give a default.
func (r *Resolver) CheckLimits(ctx context.Context, s *scope.Scope) error {
	namespace := s.Experiment.Namespace
	var quotas corev1.ResourceQuotaList
	if err := r.Client.List(ctx, &quotas, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	limited := limitedBy(quotas.Items)
	if len(limited) == 0 {
		return nil
	}
	var ranges corev1.LimitRangeList
	if err := r.Live.List(ctx, &ranges, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quota := limited[name]; quota != "" && !hasDefault(ranges.Items, name) {
			s.AddFinding(scope.ReasonLimitsMissing, field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf(
				"ResourceQuota %s of namespace %s has limits.%s, and no LimitRange there gives containers a default limit of %[3]s: add one, or bound requests.%[3]s instead",
				quota, namespace, name)))
		}
	}
	return nil
}

// limitedBy names the quota, if any, that bounds the limits of each resource. Only the API server evaluates scoped ones.
func limitedBy(quotas []corev1.ResourceQuota) map[corev1.ResourceName]string {
	limited := map[corev1.ResourceName]string{}
	for i := range quotas {
		q := &quotas[i]
		if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		for of, name := range map[corev1.ResourceName]corev1.ResourceName{corev1.ResourceLimitsCPU: corev1.ResourceCPU, corev1.ResourceLimitsMemory: corev1.ResourceMemory} {
			if _, bounded := q.Spec.Hard[of]; bounded {
				limited[name] = q.Name
			}
		}
	}
	return limited
}

// hasDefault reports whether a container without a limit of a resource gets one.
func hasDefault(ranges []corev1.LimitRange, name corev1.ResourceName) bool {
	return slices.ContainsFunc(ranges, func(r corev1.LimitRange) bool {
		return slices.ContainsFunc(r.Spec.Limits, func(item corev1.LimitRangeItem) bool {
			_, given := item.Default[name]
			_, bounded := item.Max[name] // Kubernetes takes the maximum as the default
			return item.Type == corev1.LimitTypeContainer && (given || bounded)
		})
	})
}
