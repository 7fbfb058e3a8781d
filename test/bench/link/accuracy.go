package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
)

const mtu = 1500

// bed is two or more nodes on one network of an engine in this process.
type bed struct {
	engine  *driver.Driver
	network *driver.Network
	ports   []*driver.Port
	nodes   []*radiotest.Node
}

func newBed(nodes int, p link.Parameters) (*bed, error) {
	engine, err := driver.New(engineOptions)
	if err != nil {
		return nil, err
	}
	b := &bed{engine: engine}
	if b.network, err = engine.NewNetwork(radio.NetworkOptions{Model: link.New(link.Config{Seed: 1, Default: p}), MTU: mtu}); err != nil {
		return nil, err
	}
	for i := range nodes {
		n, err := radiotest.NewNode(i+1, mtu)
		if err != nil {
			return nil, err
		}
		b.nodes = append(b.nodes, n)
	}
	b.ports, err = radiotest.Join(b.network, b.nodes...)
	return b, err
}

func (b *bed) close() {
	for _, p := range b.ports {
		p.Detach()
	}
	_ = b.engine.Close()
	for _, n := range b.nodes {
		_ = n.Close()
	}
}

// profile is a link of the list, with the delay of the profile in EXPERIMENTS.md nearest to it.
type profile struct {
	name  string
	rate  float64
	delay time.Duration
}

var profiles = []profile{
	{"9.8 kbit/s", 9.8e3, 100 * time.Millisecond}, {"250 kbit/s", 250e3, 550 * time.Millisecond},
	{"2 Mbit/s", 2e6, 5 * time.Millisecond}, {"10 Mbit/s", 10e6, time.Millisecond},
}

func benchAccuracy(s scale) error {
	t := newTable("Link model against closed forms (error = measured - (delay + 8n/rate); one-way, kernel time stamps)",
		"link\tframes\tmedian error\tp99 error\tworst\tcarried rate\trate error\tloss 1 %\tloss 10 %")
	for _, p := range profiles {
		errors, err := delayErrors(p, s.delayFrames)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		rate, err := carriedRate(p, s.rateTime)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		one, err := losses(p, 0.01, s.lossFrames)
		if err != nil {
			return err
		}
		ten, err := losses(p, 0.1, s.lossFrames)
		if err != nil {
			return err
		}
		t.row("%s\t%d\t%v\t%v\t%v\t%.0f bit/s\t%+.2f %%\t%s\t%s", p.name, len(errors), at(errors, 0.5), at(errors, 0.99), errors[len(errors)-1],
			rate, 100*(rate/p.rate-1), one, ten)
	}
	t.end()
	return nil
}

func at(sorted []time.Duration, quantile float64) time.Duration {
	return sorted[min(int(quantile*float64(len(sorted))), len(sorted)-1)].Round(time.Microsecond)
}

// delayErrors sends frames of random lengths at random times, as fast as keeps the link from queueing
// for long, and compares each arrival with Lindley's recursion.
func delayErrors(p profile, frames int) ([]time.Duration, error) {
	b, err := newBed(2, link.Parameters{RateBitsPerSecond: p.rate, Delay: p.delay, Limit: 1000})
	if err != nil {
		return nil, err
	}
	defer b.close()
	random := rand.New(rand.NewPCG(1, 2))
	lengths := make([]int, min(frames, int(30*p.rate/8/100)))
	sent := make(chan error, 1)
	for i := range lengths {
		lengths[i] = 60 + random.IntN(80)
		if p.rate > 100e3 {
			lengths[i] = 60 + random.IntN(1450)
		}
	}
	go func() {
		for i, length := range lengths {
			if err := b.nodes[0].Send(b.nodes[0].Frame(b.nodes[1].MAC, uint64(i), length)); err != nil {
				sent <- err
				return
			}
			mean := 8 * float64(length) / p.rate / 0.6 // a load of 60 %: some frames queue, some do not
			time.Sleep(time.Duration(random.ExpFloat64() * mean * 1e9))
		}
		sent <- nil
	}()
	var errors []time.Duration
	var free int64
	for range lengths {
		r, ok, err := b.nodes[1].Receive(20 * time.Second)
		if err != nil || !ok {
			return nil, fmt.Errorf("frame %d of %d did not arrive: %v", len(errors), len(lengths), err)
		}
		free = max(r.Sent, free) + int64(8e9*float64(r.Length)/p.rate)
		errors = append(errors, time.Duration(r.Arrived-free)-p.delay)
	}
	slices.Sort(errors)
	return errors, <-sent
}

// carriedRate of a link that always has frames waiting, in bit/s.
func carriedRate(p profile, duration time.Duration) (float64, error) {
	b, err := newBed(2, link.Parameters{RateBitsPerSecond: p.rate, Limit: 1_000_000})
	if err != nil {
		return 0, err
	}
	defer b.close()
	length := 1514
	if p.rate < 100e3 {
		length = 200
	}
	frames := int(p.rate * duration.Seconds() / 8 / float64(length))
	go func() {
		for i := range frames {
			_ = b.nodes[0].Send(b.nodes[0].Frame(b.nodes[1].MAC, uint64(i), length)) // a missing frame is noticed below
			if i%200 == 199 {
				time.Sleep(5 * time.Millisecond) // no faster than the TAP's ring is emptied
			}
		}
	}()
	var first, last radiotest.Received
	for i := range frames {
		r, ok, err := b.nodes[1].Receive(10 * time.Second)
		if err != nil || !ok {
			return 0, fmt.Errorf("frame %d of %d did not arrive: %v", i, frames, err)
		}
		if i == 0 {
			first = r
		}
		last = r
	}
	return 8e9 * float64(length*(frames-1)) / float64(last.Arrived-first.Arrived), nil
}

// losses counts lost frames and holds them against the 99 % interval.
func losses(p profile, loss float64, frames int) (string, error) {
	b, err := newBed(2, link.Parameters{Delay: p.delay, Loss: loss, Limit: 1_000_000})
	if err != nil {
		return "", err
	}
	defer b.close()
	for i := range frames {
		if err := b.nodes[0].Send(b.nodes[0].Frame(b.nodes[1].MAC, uint64(i), 60)); err != nil {
			return "", err
		}
		if i%200 == 199 {
			time.Sleep(4 * time.Millisecond)
		}
	}
	arrived, err := b.nodes[1].ReceiveAll(p.delay + 500*time.Millisecond)
	if err != nil {
		return "", err
	}
	lost, expected := float64(frames-len(arrived)), float64(frames)*loss
	verdict, margin := "inside", 2.576*math.Sqrt(expected*(1-loss))
	if math.Abs(lost-expected) > margin {
		verdict = "OUTSIDE"
	}
	return fmt.Sprintf("%.0f, %s %.0f±%.0f", lost, verdict, expected, margin), nil
}

// benchSpread measures jitter and duplicates. Its link reorders, so that each delay is drawn by itself.
func benchSpread(s scale) error {
	const delay, jitter, duplicate = 50 * time.Millisecond, 40 * time.Millisecond, 0.1
	t := newTable("Jitter and duplicates against closed forms (50 ms ± 40 ms, 10 %; Kolmogorov-Smirnov: at 1 % at most 1.63)",
		"jitter\tframes\tmedian delay\tKolmogorov-Smirnov\tduplicates")
	for _, c := range []struct {
		name string
		link.Distribution
		distribution func(float64) float64 // of the deviation in units of the jitter
	}{
		{"uniform", link.Uniform, func(x float64) float64 { return min(max((x+1)/2, 0), 1) }},
		{"normal, a fifth of it", link.Normal, func(x float64) float64 { return math.Erfc(-5*x/math.Sqrt2) / 2 }},
	} {
		p := link.Parameters{Delay: delay, Jitter: jitter, Distribution: c.Distribution, Reorder: true, Duplicate: duplicate, Limit: 1_000_000}
		if c.Distribution == link.Normal {
			p.Jitter /= 5 // hardly ever below zero
		}
		delays, duplicates, err := spread(p, s.lossFrames/4)
		if err != nil {
			return err
		}
		deviations := make([]float64, len(delays))
		for i, d := range delays {
			deviations[i] = float64(d-delay) / float64(jitter)
		}
		expected := float64(len(delays)) * duplicate
		verdict, margin := "inside", 2.576*math.Sqrt(expected*(1-duplicate))
		if math.Abs(float64(duplicates)-expected) > margin {
			verdict = "OUTSIDE"
		}
		t.row("%s\t%d\t%v\t%.2f\t%d, %s %.0f±%.0f", c.name, len(delays), at(delays, 0.5), kolmogorovSmirnov(deviations, c.distribution),
			duplicates, verdict, expected, margin)
	}
	t.end()
	return nil
}

// spread sends frames one by one and gives the sorted delay of each, and how many came once more. Which of the two
// came first says nothing of their delays, so that a frame with a duplicate counts by a coin's toss.
func spread(p link.Parameters, frames int) (delays []time.Duration, duplicates int, err error) {
	b, err := newBed(2, p)
	if err != nil {
		return nil, 0, err
	}
	defer b.close()
	sent := make(chan error, 1)
	go func() {
		for i := range frames {
			if err := b.nodes[0].Send(b.nodes[0].Frame(b.nodes[1].MAC, uint64(i), 60)); err != nil {
				sent <- err
				return
			}
			time.Sleep(500 * time.Microsecond)
		}
		sent <- nil
	}()
	arrived, err := b.nodes[1].ReceiveAll(time.Second)
	if err != nil {
		return nil, 0, err
	}
	random, of := rand.New(rand.NewPCG(3, 4)), map[uint64]time.Duration{}
	for _, r := range arrived {
		_, again := of[r.Sequence]
		if again {
			duplicates++
		}
		if !again || random.IntN(2) == 0 {
			of[r.Sequence] = r.Delay()
		}
	}
	if len(of) != frames {
		return nil, 0, fmt.Errorf("%d of %d frames arrived", len(of), frames)
	}
	return slices.Sorted(maps.Values(of)), duplicates, <-sent
}

// kolmogorovSmirnov is the statistic of sorted values, with Stephens's finite-sample correction.
func kolmogorovSmirnov(sorted []float64, distribution func(float64) float64) float64 {
	n, distance := float64(len(sorted)), 0.0
	for i, v := range sorted {
		p := distribution(v)
		distance = max(distance, p-float64(i)/n, float64(i+1)/n-p)
	}
	return distance * (math.Sqrt(n) + 0.12 + 0.11/math.Sqrt(n))
}
