package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	readyTimeout  = 10 * time.Minute
	finishTimeout = 10 * time.Minute
	pollInterval  = 200 * time.Millisecond
)

// bed is a namespace of its own for the measurement.
type bed struct {
	kube      client.Client
	clientset kubernetes.Interface
	namespace string
}

func newBed(ctx context.Context) (*bed, error) {
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster: %w: set KUBECONFIG, in the developer cluster with eval \"$(hack/cluster env)\"", err)
	}
	config.QPS, config.Burst = 100, 100
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	b := &bed{kube, clientset, fmt.Sprintf("vignette-bench-%d", time.Now().Unix())}
	return b, kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}})
}

// close removes the namespace also when the measurement was interrupted.
func (b *bed) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return b.kube.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}})
}

// until polls a condition.
func until(ctx context.Context, timeout time.Duration, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		met, err := condition()
		if err != nil || met {
			return err
		}
		if !clock.Pause(ctx, pollInterval) {
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

// start is how long nodes took to be ready.
type start struct{ pods, machines, boot time.Duration }

// start the experiment and wait for its T0.
func (b *bed) start(ctx context.Context, e *v1alpha1.Experiment) (start, error) {
	var s start
	begun := time.Now()
	if err := b.kube.Create(ctx, e); err != nil {
		return s, err
	}
	err := until(ctx, readyTimeout, "T0", func() (bool, error) {
		if err := b.kube.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, err
		}
		switch now := time.Since(begun); {
		case e.Status.Phase == v1alpha1.PhaseFailed:
			return false, fmt.Errorf("the experiment failed: %s", e.Status.Message)
		case s.pods == 0 && e.Status.Nodes.Ready >= 2:
			s.pods = now
		}
		if s.machines == 0 && e.Status.Nodes.Ready == e.Status.Nodes.Total && e.Status.Nodes.Total > 0 {
			s.machines = time.Since(begun)
		}
		return e.Status.T0 != nil, nil
	})
	if err != nil {
		return s, err
	}
	ran, err := b.firstRan(ctx)
	if err == nil {
		s.boot = s.machines - ran.Sub(begun)
	}
	return s, err
}

// firstRan is when the first machine was seen running, as KubeVirt says, to the second.
func (b *bed) firstRan(ctx context.Context) (first time.Time, err error) {
	machines := &unstructured.UnstructuredList{}
	machines.SetAPIVersion("kubevirt.io/v1")
	machines.SetKind("VirtualMachineInstanceList")
	if err := b.kube.List(ctx, machines, client.InNamespace(b.namespace)); err != nil {
		return first, err
	}
	for _, m := range machines.Items {
		transitions, _, _ := unstructured.NestedSlice(m.Object, "status", "phaseTransitionTimestamps")
		for _, transition := range transitions {
			fields, _ := transition.(map[string]any)
			text, _ := fields["phaseTransitionTimestamp"].(string)
			if at, err := time.Parse(time.RFC3339, text); err == nil && fields["phase"] == "Running" && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	if first.IsZero() {
		return first, errors.New("no machine has run")
	}
	return first, nil
}

// podOf a node: a machine's is its launcher.
func (b *bed) podOf(ctx context.Context, e *v1alpha1.Experiment, node string) (*corev1.Pod, error) {
	var pods corev1.PodList
	err := b.kube.List(ctx, &pods, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(e.UID), v1alpha1.LabelNode: node})
	if err == nil && len(pods.Items) != 1 {
		err = fmt.Errorf("node %s has %d pods; want 1", node, len(pods.Items))
	}
	if err != nil {
		return nil, err
	}
	return &pods.Items[0], nil
}

const (
	// closedPort is one that radiod lets through the management network, and nobody listens at.
	closedPort   = 9498
	connections  = 200
	dialPatience = 2 * time.Second
)

// reportWithoutRadio measures how long the kernels of a pod and of a guest take to refuse a TCP connection: no radio, no program.
func (b *bed) reportWithoutRadio(ctx context.Context, e *v1alpha1.Experiment) error {
	rows := [][]string{{"", "answers", "median ms", "p75 ms", "ratio"}}
	var pods time.Duration
	for _, node := range []string{podClient, machineClient} {
		pod, err := b.podOf(ctx, e, node)
		if err != nil {
			return err
		}
		var took []time.Duration
		for range connections {
			begun := time.Now()
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(closedPort)), dialPatience)
			if err == nil {
				_ = conn.Close()
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				break // pods cannot be reached from here, or not at this port
			}
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		median := quantile(took, 0.5)
		if node == podClient {
			pods = median
		}
		rows = append(rows, []string{kindOf(node), fmt.Sprint(len(took)), milliseconds(median), milliseconds(quantile(took, 0.75)), ratio(median, pods)})
	}
	table("without radio: from here to the kernel of the node and back, through the management network (TCP, refused); 0 answers: pods cannot be reached from here", rows...)
	return nil
}

// use of a node's pod, as the kubelet last saw it.
type use struct {
	at         time.Time
	cpuSeconds float64
	memory     float64 // working set, bytes
}

func (b *bed) useOf(ctx context.Context, pod *corev1.Pod) (use, error) {
	var summary struct {
		Pods []struct {
			PodRef struct{ UID string }
			CPU    struct {
				Time                 time.Time
				UsageCoreNanoSeconds float64
			}
			Memory struct{ WorkingSetBytes float64 }
		}
	}
	text, err := b.clientset.CoreV1().RESTClient().Get().AbsPath("api/v1/nodes", pod.Spec.NodeName, "proxy/stats/summary").DoRaw(ctx)
	if err != nil {
		return use{}, fmt.Errorf("use of %s, as its host's kubelet knows it: %w", pod.Name, err)
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		return use{}, fmt.Errorf("use of %s: %w", pod.Name, err)
	}
	for _, p := range summary.Pods {
		if p.PodRef.UID == string(pod.UID) {
			return use{p.CPU.Time, p.CPU.UsageCoreNanoSeconds / 1e9, p.Memory.WorkingSetBytes}, nil
		}
	}
	return use{}, fmt.Errorf("use of %s: the kubelet does not know it yet", pod.Name)
}

// reportUse of processors and memory while messages are published.
func (b *bed) reportUse(ctx context.Context, e *v1alpha1.Experiment, publish time.Duration) error {
	nodes := []string{podClient, machineClient, podBroker, machineBroker}
	begin, end := map[string]use{}, map[string]use{}
	for _, sample := range []struct {
		at   time.Duration
		into map[string]use
	}{{startPublishing + 2*time.Second, begin}, {startPublishing + publish - time.Second, end}} {
		if !clock.Pause(ctx, time.Until(e.Status.T0.Add(sample.at))) {
			return ctx.Err()
		}
		for _, node := range nodes {
			pod, err := b.podOf(ctx, e, node)
			if err != nil {
				return err
			}
			if sample.into[node], err = b.useOf(ctx, pod); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"node", "kind", "processors", "ratio", "memory MiB", "ratio"}}
	for i, node := range nodes {
		processors := func(node string) float64 {
			return (end[node].cpuSeconds - begin[node].cpuSeconds) / end[node].at.Sub(begin[node].at).Seconds()
		}
		pod := nodes[i-i%2]
		rows = append(rows, []string{map[bool]string{true: "clients", false: "broker"}[i < 2], kindOf(node), fmt.Sprintf("%.3f", processors(node)), ratio(processors(node), processors(pod)),
			fmt.Sprintf("%.0f", end[node].memory/(1<<20)), ratio(end[node].memory, end[pod].memory)})
	}
	table("processors and memory (working set) of the nodes' pods while messages are published; a machine's pod has QEMU and KubeVirt's programs", rows...)
	return nil
}

// delivery of one message to one subscriber.
type delivery struct {
	publisher, subscriber string
	delay                 time.Duration
}

// finish waits for the results.
func (b *bed) finish(ctx context.Context, e *v1alpha1.Experiment) error {
	return until(ctx, finishTimeout, "results", func() (bool, error) {
		err := b.kube.Get(ctx, client.ObjectKeyFromObject(e), e)
		if err == nil && e.Status.Phase == v1alpha1.PhaseFailed {
			err = fmt.Errorf("the experiment failed: %s", e.Status.Message)
		}
		return e.Status.Phase == v1alpha1.PhaseSucceeded, err
	})
}

// archived gives a file of the run's archive.
func (b *bed) archived(ctx context.Context, e *v1alpha1.Experiment, path string) ([]byte, error) {
	return b.clientset.CoreV1().RESTClient().Get().AbsPath(runapi.ArchivePath(e.Namespace), "v1/runs", string(e.UID), "files", path).DoRaw(ctx)
}

func (b *bed) deliveries(ctx context.Context, e *v1alpha1.Experiment) ([]delivery, error) {
	text, err := b.archived(ctx, e, "results/deliveries.csv")
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// reportClocks tells how well the machines' clocks are known, by which delays one way may be wrong.
func (b *bed) reportClocks(ctx context.Context, e *v1alpha1.Experiment) error {
	text, err := b.archived(ctx, e, "results/results.json")
	if err != nil {
		return err
	}
	var results runapi.Results
	if err := json.Unmarshal(text, &results); err != nil {
		return err
	}
	rows := [][]string{{"node", "worst offset ms", "worst uncertainty ms"}}
	for _, c := range results.Clocks {
		rows = append(rows, []string{c.Node, fmt.Sprintf("%.2f", c.WorstOffsetSeconds*1e3), fmt.Sprintf("%.2f", c.WorstUncertaintySeconds*1e3)})
	}
	table("the machines' clocks, by the server's: delays one way may be wrong by the sum", rows...)
	return nil
}

func parse(text string) (all []delivery, err error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("deliveries.csv: %d rows, %w", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		if row[column["lost"]] == "true" {
			continue
		}
		delay, err := strconv.ParseFloat(row[column["delaySeconds"]], 64)
		if err != nil {
			return nil, fmt.Errorf("deliveries.csv: delaySeconds of %v: %w", row, err)
		}
		all = append(all, delivery{row[column["publisher"]], row[column["subscriber"]], time.Duration(delay * float64(time.Second))})
	}
	return all, nil
}
