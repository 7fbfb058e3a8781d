// Package metrics serves metrics of experiments, campaigns and teams from the operator's caches, for displays and alerts.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// collectTimeout limits a scrape, because it may wait for caches that are not filled yet.
const collectTimeout = 2 * time.Second

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("vignette_"+name, help, labels, nil)
}

var (
	experiments  = desc("experiments", "Experiments in the cluster, by phase.", "namespace", "phase")
	waitingSince = desc("experiment_waiting_since_seconds", "When an experiment that waits in the queue was made, Unix seconds.", "namespace", "experiment", "reason")
	startTime    = desc("experiment_start_time_seconds", "When an experiment that goes on was admitted, Unix seconds.", "namespace", "experiment", "phase")
	readyDueTime = desc("experiment_ready_due_time_seconds", "When an experiment that starts must be ready, unless it waited for others that start, Unix seconds.", "namespace", "experiment")
	dueTime      = desc("experiment_due_time_seconds", "When the drain of an experiment that goes on ends at the latest, Unix seconds; of none that stays up until it is stopped.",
		"namespace", "experiment", "phase")
	teamNodes = desc("team_nodes", "Nodes of experiments that have a pod which has not ended.", "namespace")
	teamQuota = desc("team_quota", "What the ResourceQuotas of a namespace with experiments allow (hard), and what is used of it (used); pods, cores or bytes.",
		"namespace", "quota", "resource", "type")
	allocatable    = desc("cluster_allocatable", "What the hosts that take pods have for them: pods, cores, bytes.", "resource")
	campaignRuns   = desc("campaign_runs", "Runs of a campaign's round, by phase.", "namespace", "campaign", "phase")
	runDelivered   = desc("campaign_run_delivered_ratio", "Share of the offered deliveries of a run of a campaign that arrived, 0 to 1.", "namespace", "campaign", "run", "point")
	runMedian      = desc("campaign_run_median_delay_seconds", "Median delay of a run of a campaign from sent to received.", "namespace", "campaign", "run", "point")
	collectFailure = desc("operator_metrics_incomplete", "1 where a kind of objects could not be read for metrics, else 0.", "kind")
)

// Collector reads experiments, pods, quotas, hosts and campaigns.
type Collector struct {
	Client client.Reader
	// ProvisioningDeadline is the time from its admission in which an experiment must be ready.
	ProvisioningDeadline func(*v1alpha1.Experiment) time.Duration
	// Elected is closed once this replica leads. Others collect nothing, or each figure would count once for each replica.
	Elected <-chan struct{}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{experiments, waitingSince, startTime, readyDueTime, dueTime, teamNodes, teamQuota, allocatable, campaignRuns, runDelivered, runMedian,
		collectFailure} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	out := series{to}
	teams := map[string]bool{}
	for _, part := range []struct {
		kind string
		of   func() error
	}{
		{"Experiment", func() error { return c.experiments(ctx, out, teams) }},
		{"Pod", func() error { return c.pods(ctx, out) }},
		{"ResourceQuota", func() error { return c.quotas(ctx, out, teams) }},
		{"Node", func() error { return c.hosts(ctx, out) }},
		{"Campaign", func() error { return c.campaigns(ctx, out) }},
	} {
		failed := 0.0
		if part.of() != nil {
			failed = 1
		}
		out.gauge(collectFailure, failed, part.kind)
	}
}

type series struct{ to chan<- prometheus.Metric }

func (s series) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

type byPhase map[[2]string]float64

func (c *Collector) experiments(ctx context.Context, out series, teams map[string]bool) error {
	var list v1alpha1.ExperimentList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	counts := byPhase{}
	for i := range list.Items {
		e := &list.Items[i]
		teams[e.Namespace] = true
		phase := e.Status.Phase
		if phase == "" {
			phase = v1alpha1.PhaseQueued
		}
		counts[[2]string{e.Namespace, string(phase)}]++
		c.experimentSeries(out, e, phase)
	}
	for key, n := range counts {
		out.gauge(experiments, n, key[0], key[1])
	}
	return nil
}

// experimentSeries adds the series of an experiment that is not over.
func (c *Collector) experimentSeries(out series, e *v1alpha1.Experiment, phase v1alpha1.ExperimentPhase) {
	switch {
	case phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseFailed:
		return
	case phase == v1alpha1.PhaseQueued:
		reason := ""
		for _, condition := range e.Status.Conditions {
			if condition.Type == "Admitted" {
				reason = condition.Reason
			}
		}
		out.gauge(waitingSince, seconds(e.CreationTimestamp.Time), e.Namespace, e.Name, reason)
	}
	if e.Status.StartTime != nil {
		out.gauge(startTime, seconds(e.Status.StartTime.Time), e.Namespace, e.Name, string(phase))
	}
	if phase == v1alpha1.PhaseProvisioning && e.Status.StartTime != nil {
		out.gauge(readyDueTime, seconds(e.Status.StartTime.Add(c.ProvisioningDeadline(e))), e.Namespace, e.Name)
	}
	duration, err := time.ParseDuration(string(e.Spec.Duration))
	drain, drainErr := time.ParseDuration(string(e.Spec.Drain.Max))
	if e.Status.T0 == nil || err != nil || drainErr != nil {
		return
	}
	out.gauge(dueTime, seconds(e.Status.T0.Add(duration+drain)), e.Namespace, e.Name, string(phase))
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func (c *Collector) pods(ctx context.Context, out series) error {
	var list corev1.PodList
	if err := c.Client.List(ctx, &list, client.HasLabels{v1alpha1.LabelNode}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	counts := map[string]float64{}
	for i := range list.Items {
		if phase := list.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			counts[list.Items[i].Namespace]++
		}
	}
	for namespace, n := range counts {
		out.gauge(teamNodes, n, namespace)
	}
	return nil
}

func (c *Collector) quotas(ctx context.Context, out series, teams map[string]bool) error {
	var list corev1.ResourceQuotaList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		q := &list.Items[i]
		if !teams[q.Namespace] {
			continue
		}
		for kind, resources := range map[string]corev1.ResourceList{"hard": q.Status.Hard, "used": q.Status.Used} {
			for name, quantity := range resources {
				out.gauge(teamQuota, quantity.AsApproximateFloat64(), q.Namespace, q.Name, string(name), kind)
			}
		}
	}
	return nil
}

func (c *Collector) hosts(ctx context.Context, out series) error {
	var list corev1.NodeList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	sums := map[corev1.ResourceName]float64{}
	for i := range list.Items {
		node := &list.Items[i]
		if !queue.TakesPods(node) {
			continue
		}
		for _, name := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory} {
			quantity := node.Status.Allocatable[name]
			sums[name] += quantity.AsApproximateFloat64()
		}
	}
	for name, sum := range sums {
		out.gauge(allocatable, sum, string(name))
	}
	return nil
}

func (c *Collector) campaigns(ctx context.Context, out series) error {
	var list v1alpha1.CampaignList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		campaign := &list.Items[i]
		counts := map[v1alpha1.RunPhase]float64{}
		for j := range campaign.Status.Runs {
			run := &campaign.Status.Runs[j]
			counts[run.Phase]++
			if run.Results != nil {
				results(out, run, campaign.Namespace, campaign.Name, run.Name, run.Point)
			}
		}
		for phase, n := range counts {
			out.gauge(campaignRuns, n, campaign.Namespace, campaign.Name, string(phase))
		}
	}
	return nil
}

func results(out series, run *v1alpha1.CampaignRun, labels ...string) {
	r := run.Results
	if offered := max(r.Offered, r.Expected); offered > 0 { // an older status has only the expected ones
		out.gauge(runDelivered, float64(r.Received)/float64(offered), labels...)
	}
	if delay, err := time.ParseDuration(r.MedianDelay); err == nil { // 112.4ms, or 2.50s
		out.gauge(runMedian, delay.Seconds(), labels...)
	}
}
