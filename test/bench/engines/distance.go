package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// resamples of the messages for an interval.
const resamples = 1000

// delay of one reception of a message.
type delay struct {
	message      uint32
	milliseconds float64
}

// distances between the distributions of two engines' delays. No summary of both can hide what they miss, as medians do where delays
// have two modes.
type distances struct {
	// KolmogorovSmirnov is the largest difference between the shares of delays up to a time, 0 to 1.
	KolmogorovSmirnov distance
	// WassersteinMilliseconds is the area between those shares: by how much a delay differs on average, rank by rank.
	WassersteinMilliseconds distance
}

// distance with its bootstrap interval of 95 %. ByChance is below what 95 % of the random assignments of delays to engines have.
type distance struct{ Value, Low, High, ByChance float64 }

// distancesOf compares two engines that got the same messages at the same times. Messages are drawn, and not receptions: the
// receptions of one message have the same delay in its sender's queue.
func distancesOf(a, b []delay, messages int, seed uint64) distances {
	m := merge(a, b)
	random := rand.New(rand.NewPCG(seed, 1))
	once := make([]float64, messages)
	for i := range once {
		once[i] = 1
	}
	none := make([]float64, messages)
	ks, w := m.between(once, none)
	result := distances{distance{Value: ks}, distance{Value: w}}
	var drawn, swapped [2][]float64
	for range resamples {
		times := make([]float64, messages)
		for range messages {
			times[random.IntN(messages)]++
		}
		swap := make([]float64, messages)
		for i := range swap {
			swap[i] = float64(random.IntN(2))
		}
		for i, share := range pair(m.between(times, none)) {
			drawn[i] = append(drawn[i], share)
		}
		for i, share := range pair(m.between(once, swap)) {
			swapped[i] = append(swapped[i], share)
		}
	}
	for i, d := range []*distance{&result.KolmogorovSmirnov, &result.WassersteinMilliseconds} {
		slices.Sort(drawn[i])
		slices.Sort(swapped[i])
		d.Low, d.High, d.ByChance = quantile(drawn[i], 0.025), quantile(drawn[i], 0.975), quantile(swapped[i], 0.95)
	}
	return result
}

func pair(a, b float64) [2]float64 { return [2]float64{a, b} }

// merged are the delays of two engines in order.
type merged []struct {
	delay
	engine int
}

func merge(a, b []delay) (m merged) {
	m = make(merged, len(a)+len(b))
	for i := range a {
		m[i].delay = a[i]
	}
	for i := range b {
		m[len(a)+i].delay, m[len(a)+i].engine = b[i], 1
	}
	slices.SortFunc(m, func(a, b struct {
		delay
		engine int
	}) int {
		return cmp.Compare(a.milliseconds, b.milliseconds)
	})
	return m
}

// between returns the distances with so many of each message, of which a share counts for the other engine. They are NaN where an
// engine has no delays.
func (m merged) between(times, swapped []float64) (kolmogorovSmirnov, wasserstein float64) {
	var total, below [2]float64
	each := func(i int, add *[2]float64) {
		message := m[i].message
		add[m[i].engine] += times[message] * (1 - swapped[message])
		add[1-m[i].engine] += times[message] * swapped[message]
	}
	for i := range m {
		each(i, &total)
	}
	if total[0] == 0 || total[1] == 0 {
		return math.NaN(), math.NaN()
	}
	for i := range m {
		each(i, &below)
		if i+1 == len(m) || m[i+1].milliseconds == m[i].milliseconds {
			continue
		}
		difference := math.Abs(below[0]/total[0] - below[1]/total[1])
		kolmogorovSmirnov = max(kolmogorovSmirnov, difference)
		wasserstein += difference * (m[i+1].milliseconds - m[i].milliseconds)
	}
	return kolmogorovSmirnov, wasserstein
}
