// vm measures what a node that is a virtual machine costs beside one that is a pod, in one experiment of two of each: delays over the
// radio, what the guest adds to a round trip without radio, the time until its agent is ready, processor time and memory. It needs the
// platform and KubeVirt on the cluster of KUBECONFIG, and nothing else that runs there. Figures are of one run, and as ratios to the
// pods'; nothing is asserted.
//
//	go run ./test/bench/vm [-seconds 60]
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

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func main() {
	seconds := flag.Int("seconds", 60, "how long messages are published")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, time.Duration(*seconds)*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, publish time.Duration) (err error) {
	b, err := newBed(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cleanErr := b.close(); err == nil {
			err = cleanErr
		}
	}()
	e := experimentOf(b.namespace, publish)
	boots, err := b.start(ctx, e)
	if err != nil {
		return err
	}
	reportStart(boots)
	if err := b.reportWithoutRadio(ctx, e); err != nil {
		return err
	}
	if err := b.reportUse(ctx, e, publish); err != nil {
		return err
	}
	if err := b.finish(ctx, e); err != nil {
		return err
	}
	deliveries, err := b.deliveries(ctx, e)
	if err != nil {
		return err
	}
	reportDelays(deliveries)
	if err := b.reportClocks(ctx, e); err != nil {
		return err
	}
	return b.reportTurnaround(ctx, e)
}

// The nodes: of each kind one with a broker, and one with clients of both brokers.
const (
	podBroker, podClient         = "podb", "podc"
	machineBroker, machineClient = "vmb", "vmc"
)

const (
	linkDelay = 10 * time.Millisecond
	// startPublishing after T0, until when the machines do nothing: what is measured without load is measured then.
	startPublishing = 30 * time.Second
)

// experimentOf has each client publish to each broker and subscribe there to what it published: a round trip by one clock. Subscribers
// beside the brokers have the way there, by two clocks.
func experimentOf(namespace string, publish time.Duration) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{}
	e.Namespace, e.Name = namespace, "vm"
	after := func(d time.Duration) v1alpha1.Duration { return v1alpha1.Duration(d.String()) }
	e.Spec = v1alpha1.ExperimentSpec{Duration: after(startPublishing + publish + 5*time.Second), Seed: 1, Drain: v1alpha1.Drain{Max: "10s", QuietFor: "2s"},
		Networks: []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{Delay: after(linkDelay), Loss: "0%", Limit: 1000}}},
		Apps: []v1alpha1.App{{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}},
			{Name: "there", Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTT, To: "broker", Topics: []string{"#"}}}}}
	apps := map[string][]string{podBroker: {"broker", "there"}, machineBroker: {"broker", "there"}}
	var publishers []string
	for _, client := range []string{podClient, machineClient} {
		for _, broker := range []string{podBroker, machineBroker} {
			name, to := client+"-"+broker, broker+"/broker"
			e.Spec.Apps = append(e.Spec.Apps,
				v1alpha1.App{Name: name, Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTT, To: to, Topic: name, Period: "250ms", Payload: "bytes:200", Lead: "5s"}},
				v1alpha1.App{Name: back(name), Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTT, To: to, Topics: []string{name}}})
			apps[client] = append(apps[client], name, back(name))
			publishers = append(publishers, name)
		}
	}
	for _, node := range []string{podBroker, podClient, machineBroker, machineClient} {
		n := v1alpha1.Node{Name: node, Networks: []string{"wan"}, Apps: apps[node]}
		if node == machineBroker || node == machineClient {
			n.Runtime = v1alpha1.RuntimeVM
		}
		e.Spec.Nodes = append(e.Spec.Nodes, n)
	}
	e.Spec.Timeline = []v1alpha1.TimelineEntry{{At: after(startPublishing), Start: publishers}, {At: after(startPublishing + publish), Stop: publishers}}
	e.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
	return e
}

// back is the subscriber to what a publisher publishes.
func back(publisher string) string { return "back-" + publisher }

// table prints rows of columns.
func table(title string, rows ...[]string) {
	fmt.Println("\n" + title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for _, cell := range row {
			fmt.Fprint(w, cell, "\t")
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}

func reportStart(boots start) {
	table("seconds after the experiment was made until the agents of its nodes were ready",
		[]string{"", "2 pods", "2 machines", "ratio"},
		[]string{"from the beginning", seconds(boots.pods), seconds(boots.machines), ratio(boots.machines, boots.pods)},
		[]string{"from when the first machine ran (QEMU started)", "", seconds(boots.boot), ""})
}

func reportDelays(all []delivery) {
	group := func(wanted func(d *delivery) bool) []time.Duration {
		var delays []time.Duration
		for i := range all {
			if wanted(&all[i]) {
				delays = append(delays, all[i].delay)
			}
		}
		slices.Sort(delays)
		return delays
	}
	show := func(title string, less time.Duration, of func(client, broker string) func(d *delivery) bool) {
		rows := [][]string{{"from", "to", "messages", "median ms", "p75 ms", fmt.Sprintf("median less the link's %v", less), "ratio to pods"}}
		var pods time.Duration
		for _, way := range [][2]string{{podClient, podBroker}, {podClient, machineBroker}, {machineClient, podBroker}, {machineClient, machineBroker}} {
			delays := group(of(way[0], way[1]))
			median := quantile(delays, 0.5)
			if pods == 0 {
				pods = median - less
			}
			rows = append(rows, []string{kindOf(way[0]), kindOf(way[1]), fmt.Sprint(len(delays)), milliseconds(median), milliseconds(quantile(delays, 0.75)),
				milliseconds(median - less), ratio(median-less, pods)})
		}
		table(title, rows...)
	}
	show("there and back over the radio by MQTT, client to broker, by the client's clock", 2*linkDelay, func(client, broker string) func(d *delivery) bool {
		name := client + "-" + broker
		return func(d *delivery) bool { return d.publisher == client+"/"+name && d.subscriber == client+"/"+back(name) }
	})
	show("one way over the radio by MQTT, client to broker, by both clocks", linkDelay, func(client, broker string) func(d *delivery) bool {
		return func(d *delivery) bool {
			return d.publisher == client+"/"+client+"-"+broker && d.subscriber == broker+"/there"
		}
	})
}

func kindOf(node string) string {
	if node == machineBroker || node == machineClient {
		return "machine"
	}
	return "pod"
}

// quantile of sorted durations, by linear interpolation; 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + time.Duration((at-float64(low))*float64(sorted[high]-sorted[low]))
}

func seconds(d time.Duration) string      { return fmt.Sprintf("%.1f", d.Seconds()) }
func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1e3) }

func ratio[N time.Duration | float64](a, b N) string {
	if b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(a)/float64(b))
}
