package phy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A radio without channel access whose transmissions of equal length and strength collide is pure ALOHA. Of
// an offered load G the share exp(-2G) gets through. Source: N. Abramson, The ALOHA system, AFIPS Fall Joint
// Computer Conference 37, 1970.
func TestCollisionsOfManyHiddenTerminalsFollowPureALOHA(t *testing.T) {
	const senders, frames, onAir = 200, 20_000, 1000 // µs
	for _, load := range []float64{0.1, 0.5, 1} {
		t.Run(fmt.Sprint("G = ", load), func(t *testing.T) {
			want := math.Exp(-2 * load)
			// Whether neighbours in time get through is not independent: twice the binomial deviation is ample.
			margin := 2 * 2.576 * math.Sqrt(want*(1-want)/frames)
			share := 0.0
			for seed := range uint64(3) {
				share = alohaShare(rand.New(rand.NewPCG(seed, 1)), load, senders, frames, onAir)
				if math.Abs(share-want) <= margin {
					return
				}
			}
			t.Errorf("a share of %.4f got through; want %.4f ± %.4f", share, want, margin)
		})
	}
}

func alohaShare(random *rand.Rand, load float64, senders, frames int, onAir int64) float64 {
	w := &world{loss: map[[2]int]float64{}}
	for i := range senders {
		w.loss[[2]int{i + 2, 1}] = 70
	}
	m, p := mediumOf(senders+1, Config{Interference: All, PCR: linearCurve, Environment: w})
	var sent []*Transmission
	now, received := 0.0, 0
	end := func(before int64) {
		for len(sent) > 0 && sent[0].End < before {
			if r, _ := receive(m, sent[0], p[0]); r.Received {
				received++
			}
			sent = sent[1:]
		}
	}
	for i := range frames {
		now += random.ExpFloat64() * float64(onAir) / load
		t := send(m, p[1+i%senders], uint64(i), int64(now), int64(now)+onAir)
		sent = append(sent, t)
		end(t.Start)
	}
	end(math.MaxInt64)
	return float64(received) / float64(frames)
}
