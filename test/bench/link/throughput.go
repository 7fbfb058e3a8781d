package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/internal/radiod/worker"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// benchThroughput offers more than can be carried to one pair of nodes.
func benchThroughput(s scale) error {
	t := newTable("What a baseline link (no rate limit, 1 ms) carries between two nodes", "frame\tframes/s\tMbit/s\tlost in front of the model")
	for _, length := range []int{100, 900, 1514} {
		b, err := newBed(2, link.Parameters{Delay: time.Millisecond, Limit: 1_000_000})
		if err != nil {
			return err
		}
		frame := b.nodes[0].Frame(b.nodes[1].MAC, 0, length)
		before, start, sent := received(b), time.Now(), 0
		for time.Since(start) < s.loadTime/2 {
			for range 64 {
				if b.nodes[0].Send(frame) == nil {
					sent++
				}
			}
		}
		took := time.Since(start).Seconds()
		carried := float64(received(b)-before) / took
		accepted := b.network.Snapshot(false)[0].FramesSent
		t.row("%d bytes\t%.0f\t%.0f\t%.1f %%", length, carried, carried*float64(8*length)/1e6, 100*(1-float64(accepted)/float64(sent)))
		b.close()
	}
	t.end()
	return nil
}

func received(b *bed) uint64 { return b.network.Snapshot(false)[1].FramesReceived }

// noKeeper is a parent that keeps nothing, so as not to affect the measurement.
type noKeeper struct{}

func (noKeeper) Hold(string, int) error { return nil }
func (noKeeper) Drop(string) error      { return nil }

// benchAttach measures what the CNI plugin waits for.
func benchAttach(s scale) error {
	directory, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	loops, err := driver.New(engineOptions)
	if err != nil {
		return err
	}
	m, err := worker.NewManager(worker.Options{StateDirectory: directory, Plane: dataplane.New(loops), Keeper: noKeeper{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.SetNetwork(network(s.attachments)); err != nil {
		return err
	}
	var took []time.Duration
	for i := range s.attachments {
		namespace, err := radiotest.Namespace()
		if err != nil {
			return err
		}
		defer namespace.Close()
		start := time.Now()
		answer := m.Serve(wire.Request{Command: "ADD", PodUID: podUID(i), Attachment: wire.Attachment{ContainerID: podUID(i), Interface: "vhf"}}, namespace)
		took = append(took, time.Since(start))
		if answer.Error != "" {
			return fmt.Errorf("attach: %s", answer.Error)
		}
	}
	slices.Sort(took)
	t := newTable("Attaching a pod: TAP, address, routes, settings, nftables", "pods\tmedian\tp99\tworst")
	t.row("%d\t%v\t%v\t%v", len(took), at(took, 0.5), at(took, 0.99), took[len(took)-1].Round(time.Microsecond))
	t.end()
	return m.RemoveNetwork("bench")
}

func podUID(i int) string { return fmt.Sprintf("pod-%d", i) }

func network(members int) *v1alpha1.RadioNetwork {
	n := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Name: "bench", UID: "bench"}}
	n.Spec = v1alpha1.RadioNetworkSpec{Network: "vhf", MTU: mtu, Waveform: v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Delay: "1ms"}}}
	for i := range members {
		n.Spec.Members = append(n.Spec.Members, v1alpha1.Member{Node: fmt.Sprintf("node-%d", i), NEM: int32(i + 1), Interface: "vhf", Primary: true,
			MAC: fmt.Sprintf("02:02:00:00:00:%02x", i+1), Address: fmt.Sprintf("198.18.9.%d/24", i+1), PodUID: types.UID(podUID(i))})
	}
	return n
}
