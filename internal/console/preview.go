package console

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/queue"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/timeline"
	"vignette.dev/vignette/operators/experiment/topology"
)

// Preview says what valid objects would take.
type Preview struct {
	Experiments []ExperimentPreview `json:"experiments"`
	Campaigns   []CampaignPreview   `json:"campaigns"`
	// QuotaLeft is what the namespace's quotas leave; absent without one, or if the user may not read them.
	QuotaLeft *Amounts `json:"quotaLeft,omitempty"`
}

// Amounts of what pods take. An absent one has no bound.
type Amounts struct {
	Pods        *int64   `json:"pods,omitempty"`
	CPU         *float64 `json:"cpu,omitempty"`
	MemoryBytes *int64   `json:"memoryBytes,omitempty"`
}

// ExperimentPreview is what an experiment would take.
type ExperimentPreview struct {
	Name string `json:"name"`
	// Nodes is also the number of pods.
	Nodes int `json:"nodes"`
	// CPU in cores and MemoryBytes are the requests of all nodes.
	CPU         float64 `json:"cpu"`
	MemoryBytes int64   `json:"memoryBytes"`
	// DurationSeconds from T0 on; absent for a live cluster.
	DurationSeconds *float64 `json:"durationSeconds,omitempty"`
	// FitsQuota is absent where QuotaLeft is.
	FitsQuota *bool `json:"fitsQuota,omitempty"`
}

// CampaignPreview is what a campaign would take.
type CampaignPreview struct {
	// Name has the kind before it, as in the list of objects.
	Name        string `json:"name"`
	Points      int    `json:"points"`
	Runs        int    `json:"runs"`
	Parallelism int    `json:"parallelism"`
	// DurationSeconds of all runs, by their specs.
	DurationSeconds float64 `json:"durationSeconds"`
}

func (k *surroundings) preview(ctx context.Context, report validate.Report) Preview {
	made := Preview{Experiments: []ExperimentPreview{}, Campaigns: []CampaignPreview{}}
	for _, name := range report.Objects {
		if e, is := report.Expansions[name]; is {
			made.Campaigns = append(made.Campaigns, CampaignPreview{name, e.Points, e.Runs, e.Parallelism, e.Duration.Seconds()})
		}
	}
	made.QuotaLeft = k.quotaLeft(ctx)
	for _, e := range report.Experiments {
		if needs, ok := needsOf(e); ok {
			if made.QuotaLeft != nil {
				fits := made.QuotaLeft.hold(needs)
				needs.FitsQuota = &fits
			}
			made.Experiments = append(made.Experiments, needs)
		}
	}
	return made
}

// needsOf a valid experiment, by the same code as the admission queue's.
func needsOf(e *v1alpha1.Experiment) (needs ExperimentPreview, ok bool) {
	t, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		return needs, false
	}
	compiled, errs := timeline.Compile(&e.Spec, t)
	if len(errs) > 0 {
		return needs, false
	}
	pods := render.Footprints(render.Input{Experiment: e, Topology: t})
	needs = ExperimentPreview{Name: e.Name, Nodes: len(pods)}
	var cpu, memory resource.Quantity
	for _, pod := range pods {
		requests := queue.Requests(&pod.Spec)
		cpu.Add(requests[corev1.ResourceCPU])
		memory.Add(requests[corev1.ResourceMemory])
	}
	needs.CPU, needs.MemoryBytes = cpu.AsApproximateFloat64(), memory.Value()
	if !compiled.Live() {
		seconds := compiled.End(nil).Seconds()
		needs.DurationSeconds = &seconds
	}
	return needs, true
}

// hold reports whether an experiment fits into what is left.
func (a *Amounts) hold(e ExperimentPreview) bool {
	return (a.Pods == nil || int64(e.Nodes) <= *a.Pods) && (a.CPU == nil || e.CPU <= *a.CPU) && (a.MemoryBytes == nil || e.MemoryBytes <= *a.MemoryBytes)
}

// quotaLeft is the least that any of the namespace's quotas leaves.
func (k *surroundings) quotaLeft(ctx context.Context) *Amounts {
	var quotas corev1.ResourceQuotaList
	if k.read(ctx, "/api/v1/namespaces/"+k.namespace+"/resourcequotas", wholeObjects, &quotas) != nil || len(quotas.Items) == 0 {
		return nil
	}
	left := &Amounts{}
	for _, quota := range quotas.Items {
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			continue // it may not count nodes
		}
		for name, hard := range quota.Status.Hard {
			rest := hard.DeepCopy()
			rest.Sub(quota.Status.Used[name])
			left.bound(name, rest)
		}
	}
	return left
}

func (a *Amounts) bound(name corev1.ResourceName, rest resource.Quantity) {
	switch name {
	case corev1.ResourcePods, "count/pods":
		a.Pods = least(a.Pods, rest.Value())
	case corev1.ResourceCPU, corev1.ResourceRequestsCPU:
		a.CPU = least(a.CPU, rest.AsApproximateFloat64())
	case corev1.ResourceMemory, corev1.ResourceRequestsMemory:
		a.MemoryBytes = least(a.MemoryBytes, rest.Value())
	}
}

func least[N int64 | float64](known *N, other N) *N {
	if known != nil {
		other = min(*known, other)
	}
	return &other
}
