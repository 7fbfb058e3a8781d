// operator measures the operator's cost by number of experiments: API calls, processor time and time per experiment, memory,
// and its writes at rest, of which there must be none.
//
// etcd, API server, scheduler and the operator are real processes. kwok simulates kubelets. This program simulates radiod, Argo, the archive and
// all agents at low cost, and counts them separately. Experiments are live clusters of 25 nodes in ten namespaces. They are applied
// in steps until all run at once, and stopped in the same steps. A step's cost is reported per experiment.
//
//	go run ./test/bench/operator [-experiments 500] [-nodes 25] [-steps 50,100,200] [-settle 2m] [-profiles DIR]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

type options struct {
	experiments, nodes, teams int
	steps                     string
	settle, patience          time.Duration
	profiles, keep            string
	programs, operator        string
}

func main() {
	var o options
	flag.IntVar(&o.experiments, "experiments", 500, "experiments that run at once in the end")
	flag.IntVar(&o.nodes, "nodes", 25, "nodes, each a pod, of an experiment")
	flag.IntVar(&o.teams, "teams", 10, "namespaces that the experiments are spread over")
	flag.StringVar(&o.steps, "steps", "50,100,200", "numbers of experiments, rising, at which the cost is told; the last is -experiments")
	flag.DurationVar(&o.settle, "settle", 2*time.Minute, "how long nothing is done while writes are counted, with all running and with all finished")
	flag.DurationVar(&o.patience, "patience", 5*time.Minute, "longest time in which no further experiment of a step is as wanted")
	flag.StringVar(&o.profiles, "profiles", "", "`folder` for processor and heap profiles of the operator in each phase")
	flag.StringVar(&o.keep, "logs", "", "`folder` for the programs' logs, the audit log among them; they are thrown away otherwise")
	flag.StringVar(&o.programs, "programs", "", "`folder` that has operator or kwok, as to hold another operator beside; what it lacks is built")
	flag.StringVar(&o.operator, "operator-flags", "", "further flags of the operator, separated by spaces")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// counts are the numbers of experiments after each step.
func (o options) counts() (counts []int, err error) {
	for _, text := range strings.FieldsFunc(o.steps, func(r rune) bool { return r == ',' || r == ' ' }) {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return nil, fmt.Errorf("-steps: %q is no number of experiments", text)
		}
		if count < o.experiments {
			counts = append(counts, count)
		}
	}
	counts = append(counts, o.experiments)
	if !slices.IsSorted(counts) {
		return nil, fmt.Errorf("-steps %s: want rising numbers", o.steps)
	}
	return counts, nil
}

func bench(ctx context.Context, o options) (err error) {
	counts, err := o.counts()
	if err != nil {
		return err
	}
	b, err := newBed(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := b.close(); err == nil {
			err = closeErr
		}
	}()
	r, err := b.measure(ctx, counts)
	r.peak = b.operator.memory().peak
	err = errors.Join(err, b.cluster.failures())
	r.print(os.Stdout, o)
	if err == nil {
		err = r.silent()
	}
	return err
}

// measure measures every phase: experiments start in steps, rest, end in the same steps, rest.
func (b *bed) measure(ctx context.Context, counts []int) (*report, error) {
	r := &report{}
	from := 0
	for _, to := range counts {
		step, err := b.phase(ctx, "start", from, to, b.apply, running)
		if err != nil {
			return r, err
		}
		r.starts, from = append(r.starts, step), to
	}
	rest, err := b.rest(ctx, "running", from)
	if err != nil {
		return r, err
	}
	r.rests = append(r.rests, rest)
	from = 0
	for _, to := range counts {
		step, err := b.phase(ctx, "stop", from, to, b.stop, over)
		if err != nil {
			return r, err
		}
		r.stops, from = append(r.stops, step), to
	}
	rest, err = b.rest(ctx, "finished", from)
	r.rests = append(r.rests, rest)
	return r, err
}

// phase changes the experiments from (of all) up to to, and waits until each is as wanted.
func (b *bed) phase(ctx context.Context, name string, from, to int, do func(context.Context, int) error, reached func(seen) bool) (step, error) {
	defer b.profile(ctx, fmt.Sprintf("%s-%d", name, to))()
	before, err := b.sample()
	if err != nil {
		return step{}, err
	}
	for i := from; i < to; i++ {
		if err := do(ctx, i); err != nil {
			return step{}, err
		}
	}
	applied := time.Now()
	err = b.cluster.wait(ctx, b.patience, from, to, reached)
	after, sampleErr := b.sample()
	if err == nil {
		err = sampleErr
	}
	if err != nil {
		return step{}, fmt.Errorf("%s %d to %d: %w", name, from, to, err)
	}
	s := step{from: from, to: to, applying: applied.Sub(before.at), usage: after.since(before)}
	fmt.Fprintf(os.Stderr, "%s %d to %d: %s\n", name, from, to, s.usage.wall.Round(time.Second))
	return s, nil
}

// rest rests as long as wanted, after all changes have ended.
func (b *bed) rest(ctx context.Context, what string, count int) (step, error) {
	if err := sleep(ctx, quietBefore); err != nil {
		return step{}, err
	}
	defer b.profile(ctx, "rest-"+what)()
	before, err := b.sample()
	if err != nil {
		return step{}, err
	}
	if err := sleep(ctx, b.settle); err != nil {
		return step{}, err
	}
	after, err := b.sample()
	return step{name: what, from: 0, to: count, usage: after.since(before)}, err
}

// quietBefore is how long the last events may take to be written.
const quietBefore = 15 * time.Second

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
