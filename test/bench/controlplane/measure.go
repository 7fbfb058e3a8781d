package main

import (
	"context"
	"fmt"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// The stages of a pod's start, in order, and at last that of the experiment.
const (
	created    = "created"
	released   = "released from its gate"
	scheduled  = "given a host"
	sandboxed  = "given its network"
	initiated  = "past its init container"
	started    = "running"
	agentReady = "known to be ready (agent and radio)"
)

var stages = []string{created, released, scheduled, sandboxed, initiated, started, agentReady}

// readyTimeout of one measurement.
const readyTimeout = 10 * time.Minute

// run is one measurement: how long after the creation the last pod reached each stage.
type run struct {
	last map[string]time.Duration
}

func (r run) ready() time.Duration {
	if at, ok := r.last[agentReady]; ok {
		return at
	}
	return r.last[started]
}

func (r run) at(stage string) string {
	if at, ok := r.last[stage]; ok {
		return fmt.Sprintf("%.2f", at.Seconds())
	}
	return "-"
}

// progress notes when each pod is first seen in each stage.
type progress struct {
	begin time.Time
	want  int
	seen  map[string]map[string]bool // pods by stage
	last  map[string]time.Duration
}

func newProgress(want int) *progress {
	return &progress{begin: time.Now(), want: want, seen: map[string]map[string]bool{}, last: map[string]time.Duration{}}
}

func (p *progress) note(stage, pod string) {
	if p.seen[stage] == nil {
		p.seen[stage] = map[string]bool{}
	}
	if !p.seen[stage][pod] {
		p.seen[stage][pod] = true
		p.last[stage] = time.Since(p.begin)
	}
}

func (p *progress) observe(pod *corev1.Pod) {
	p.note(created, pod.Name)
	if len(pod.Spec.SchedulingGates) == 0 {
		p.note(released, pod.Name)
	}
	for stage, condition := range map[string]corev1.PodConditionType{
		scheduled: corev1.PodScheduled, sandboxed: corev1.PodReadyToStartContainers, initiated: corev1.PodInitialized, started: corev1.PodReady} {
		for _, c := range pod.Status.Conditions {
			if c.Type == condition && c.Status == corev1.ConditionTrue {
				p.note(stage, pod.Name)
			}
		}
	}
}

func (p *progress) all(stage string) bool { return len(p.seen[stage]) == p.want }

// bare starts pods like those of the template, with a second network if one is named, and waits until all are ready.
func (b *bed) bare(ctx context.Context, template []corev1.Pod, network string) (run, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	pods, err := b.kube.Watch(ctx, &corev1.PodList{}, client.InNamespace(b.namespace))
	if err != nil {
		return run{}, err
	}
	defer pods.Stop()
	p := newProgress(len(template))
	if err := b.createAll(ctx, template, network); err != nil {
		return run{}, err
	}
	for !p.all(started) {
		event, open := <-pods.ResultChan()
		if !open {
			return run{}, fmt.Errorf("%d of %d bare pods are ready: %w", len(p.seen[started]), p.want, ctx.Err())
		}
		if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
			p.observe(pod)
		}
	}
	err = b.kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(b.namespace), client.GracePeriodSeconds(0))
	if err == nil {
		err = b.gone(ctx)
	}
	return run{p.last}, err
}

// createAll as fast as the API server takes them.
func (b *bed) createAll(ctx context.Context, template []corev1.Pod, network string) error {
	creations, ctx := errgroup.WithContext(ctx)
	creations.SetLimit(8)
	for i := range template {
		pod := bareCopy(&template[i], network)
		creations.Go(func() error { return ignoreExists(b.kube.Create(ctx, pod)) })
	}
	return creations.Wait()
}

// bareCopy of a node's pod: the same containers, init containers and volumes, without gate and radio. Its agent finds
// no run that it belongs to and keeps asking.
func bareCopy(pod *corev1.Pod, network string) *corev1.Pod {
	spec := pod.Spec.DeepCopy()
	spec.SchedulingGates, spec.NodeName = nil, ""
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare-" + pod.Name, Namespace: pod.Namespace}, Spec: *spec}
	if network != "" {
		bare.Annotations = map[string]string{nadv1.NetworkAttachmentAnnot: network}
	}
	return bare
}

// experiment runs one until every node is ready, and gives its pods too.
func (b *bed) experiment(ctx context.Context, nodes int) ([]corev1.Pod, run, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	e := benchExperiment(b.namespace, nodes)
	pods, err := b.kube.Watch(ctx, &corev1.PodList{}, client.InNamespace(b.namespace))
	if err != nil {
		return nil, run{}, err
	}
	defer pods.Stop()
	experiments, err := b.kube.Watch(ctx, &v1alpha1.ExperimentList{}, client.InNamespace(b.namespace))
	if err != nil {
		return nil, run{}, err
	}
	defer experiments.Stop()
	p := newProgress(nodes)
	if err := b.kube.Create(ctx, e); err != nil {
		return nil, run{}, err
	}
	if err := p.until(experiments.ResultChan(), pods.ResultChan()); err != nil {
		return nil, run{}, err
	}
	var list corev1.PodList
	if err := b.kube.List(ctx, &list, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelExperiment: e.Name}); err != nil {
		return nil, run{}, err
	}
	if err := b.kube.Delete(ctx, e); err != nil {
		return nil, run{}, err
	}
	return list.Items, run{p.last}, b.gone(ctx)
}

// until the experiment runs, which it does once every agent is ready and every radio attached.
func (p *progress) until(experiments, pods <-chan watch.Event) error {
	for {
		select {
		case event, open := <-pods:
			if pod, ok := event.Object.(*corev1.Pod); open && ok && event.Type != watch.Deleted {
				p.observe(pod)
			} else if !open {
				pods = nil
			}
		case event, open := <-experiments:
			if !open {
				return fmt.Errorf("the experiment was not ready after %v: %d of %d pods are", readyTimeout, len(p.seen[started]), p.want)
			}
			e, ok := event.Object.(*v1alpha1.Experiment)
			if ok && e.Status.Phase == v1alpha1.PhaseFailed {
				return fmt.Errorf("the experiment failed: %s", e.Status.Message)
			}
			if ok && e.Status.Phase == v1alpha1.PhaseRunning {
				p.note(agentReady, "")
				return nil
			}
		}
	}
}

func benchExperiment(namespace string, nodes int) *v1alpha1.Experiment {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	return &v1alpha1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ready-%d", nodes), Namespace: namespace},
		Spec: v1alpha1.ExperimentSpec{
			Duration: "10m",
			Networks: []v1alpha1.Network{{Name: "wan", Waveform: "baseline", Subnet: "198.18.0.0/16"}},
			Apps: []v1alpha1.App{{Name: "bft", Resources: &corev1.ResourceRequirements{Requests: little},
				Publisher:  &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Network: "wan", Period: "10s"},
				Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTTUDP, Network: "wan"}}},
			Nodes: []v1alpha1.Node{{Name: "veh", Count: ptr.To(int32(nodes)), Networks: []string{"wan"}, Apps: []string{"bft"}}},
		},
	}
}
