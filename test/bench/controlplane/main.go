// controlplane measures how long an experiment takes from its creation until every agent is ready and
// every radio attached, beside the same pods with the same containers and init containers without
// operator and radio, in one run, and where the time goes. It needs the platform installed on the
// cluster of KUBECONFIG, and nothing else that runs there.
//
//	go run ./test/bench/controlplane [-nodes 24] [-rounds 3] [-large 243]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func main() {
	nodes := flag.Int("nodes", 24, "nodes of the experiment that is compared with bare pods")
	rounds := flag.Int("rounds", 3, "times that both are measured, in turn")
	large := flag.Int("large", 243, "nodes of one more experiment, measured once; 0 for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, *nodes, *rounds, *large); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, nodes, rounds, large int) (err error) {
	b, err := newBed(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cleanErr := b.close(); err == nil {
			err = cleanErr
		}
	}()
	template, _, err := b.experiment(ctx, nodes) // also warms every cache
	if err != nil {
		return err
	}
	var bare, attached, experiments []run
	for range rounds {
		r, err := b.bare(ctx, template, "")
		if err != nil {
			return err
		}
		bare = append(bare, r)
		if r, err = b.bare(ctx, template, idleNetwork); err != nil {
			return err
		}
		attached = append(attached, r)
		if _, r, err = b.experiment(ctx, nodes); err != nil {
			return err
		}
		experiments = append(experiments, r)
	}
	report(nodes, bare, attached, experiments)
	if large == 0 {
		return nil
	}
	_, r, err := b.experiment(ctx, large)
	if err == nil {
		fmt.Printf("\n%d nodes: ready after %.1f s\n", large, r.ready().Seconds())
		printStages(r)
	}
	return err
}

func report(nodes int, bare, attached, experiments []run) {
	fmt.Printf("%d nodes, seconds until all are ready: the same pods without operator and radio (bare); these with a second network\n"+
		"by Multus whose plugin does nothing (idle network); the experiment, until every agent has reported and every radio is attached\n", nodes)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	line := func(name string, b, a, e run) {
		bare, idle, all := b.ready().Seconds(), a.ready().Seconds(), e.ready().Seconds()
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", name, bare, idle, all, all/bare, all/idle)
	}
	fmt.Fprintln(w, "round\tbare\tidle network\texperiment\tto bare\tto idle network")
	for i := range bare {
		line(fmt.Sprint(i+1), bare[i], attached[i], experiments[i])
	}
	b, a, e := median(bare), median(attached), median(experiments)
	line("median", b, a, e)
	_ = w.Flush()
	fmt.Println("\nwhere the time goes: seconds after creation at which the last node was …")
	w = tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stage\tbare\tidle network\texperiment")
	for _, s := range stages {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s, b.at(s), a.at(s), e.at(s))
	}
	_ = w.Flush()
}

func printStages(r run) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range stages {
		fmt.Fprintf(w, "  %s\t%s\n", s, r.at(s))
	}
	_ = w.Flush()
}

func median(runs []run) run {
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b run) int { return int(a.ready() - b.ready()) })
	return sorted[len(sorted)/2]
}

// bed is a namespace of its own for the measurement.
type bed struct {
	kube      client.WithWatch
	namespace string
}

func newBed(ctx context.Context) (*bed, error) {
	scheme := clientgoscheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, nadv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster: %w: set KUBECONFIG, in the developer cluster with eval \"$(hack/cluster env)\"", err)
	}
	config.QPS, config.Burst = 1000, 1000
	kube, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	b := &bed{kube: kube, namespace: fmt.Sprintf("vignette-bench-%d", time.Now().Unix())}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := kube.Create(ctx, namespace); err != nil {
		return nil, err
	}
	idle := &nadv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Name: idleNetwork, Namespace: b.namespace},
		Spec: nadv1.NetworkAttachmentDefinitionSpec{Config: `{"cniVersion": "1.0.0", "name": "idle", "type": "loopback"}`}}
	return b, kube.Create(ctx, idle)
}

// idleNetwork is a NetworkAttachmentDefinition whose plugin finds nothing to do.
const idleNetwork = "idle"

// close removes the namespace also when the measurement was interrupted.
func (b *bed) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
	err := b.kube.Delete(ctx, namespace)
	for err == nil {
		err = b.kube.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		time.Sleep(500 * time.Millisecond)
	}
	return client.IgnoreNotFound(err)
}

// settle is the time that the host has for what outlives its pods, such as network namespaces.
const settle = 8 * time.Second

// gone waits until the namespace has no pods and no experiment.
func (b *bed) gone(ctx context.Context) error {
	for {
		var pods corev1.PodList
		var experiments v1alpha1.ExperimentList
		if err := b.kube.List(ctx, &pods, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		if err := b.kube.List(ctx, &experiments, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		pause := 500 * time.Millisecond
		empty := len(pods.Items)+len(experiments.Items) == 0
		if empty {
			pause = settle
		}
		if !clock.Pause(ctx, pause) {
			return ctx.Err()
		}
		if empty {
			return nil
		}
	}
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
