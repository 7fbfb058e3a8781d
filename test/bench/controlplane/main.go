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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	var bare, experiments []run
	for range rounds {
		r, err := b.bare(ctx, template)
		if err != nil {
			return err
		}
		bare = append(bare, r)
		_, r, err = b.experiment(ctx, nodes)
		if err != nil {
			return err
		}
		experiments = append(experiments, r)
	}
	report(nodes, bare, experiments)
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

func report(nodes int, bare, experiments []run) {
	fmt.Printf("%d nodes, seconds until all are ready\n", nodes)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "round\tbare pods\texperiment\tratio")
	for i := range bare {
		fmt.Fprintf(w, "%d\t%.2f\t%.2f\t%.2f\n", i+1, bare[i].ready().Seconds(), experiments[i].ready().Seconds(),
			experiments[i].ready().Seconds()/bare[i].ready().Seconds())
	}
	b, e := median(bare), median(experiments)
	fmt.Fprintf(w, "median\t%.2f\t%.2f\t%.2f\n", b.ready().Seconds(), e.ready().Seconds(), e.ready().Seconds()/b.ready().Seconds())
	_ = w.Flush()
	fmt.Println("\nwhere the time goes: seconds after creation at which the last node was …")
	w = tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stage\tbare pods\texperiment")
	for _, s := range stages {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s, b.at(s), e.at(s))
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
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
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
	return b, kube.Create(ctx, namespace)
}

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
		if len(pods.Items)+len(experiments.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
