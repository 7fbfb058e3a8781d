package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testtool"
)

// largeSnapshot has 10 000 waiting experiments of 50 teams, and 300 runs on 200 hosts.
func largeSnapshot() *Snapshot {
	random := rand.New(rand.NewPCG(1, 2))
	s := &Snapshot{Now: noon, Kinds: NewResourceKinds(), Quotas: map[string][]Quota{}}
	for i := range 200 {
		amount := Amount{110, 64 << 30, 32000, Unlimited}
		s.Hosts = append(s.Hosts, Host{Name: fmt.Sprint("n", i), Allocatable: amount, Free: append(Amount{}, amount...)})
	}
	c := &Cluster{kinds: s.Kinds, Hosts: s.Hosts}
	demand := func() *Demand {
		kind := random.Int64N(1 << 40)
		d := &Demand{Shapes: []Shape{
			{Count: 2 + kind%90, Each: Amount{1, 200 << 20, 60 + kind%300, 0}}, {Count: 1 + kind%7, Each: Amount{1, 900 << 20, 400 + kind%500, 0}},
		}}
		d.complete()
		d.Claim[ClaimPods] = d.pods()
		return d
	}
	for i := range 50 {
		quota := Quota{Name: "team"}
		for of := range quota.Hard {
			quota.Hard[of] = Unlimited
		}
		quota.Hard[ClaimPods] = int64(200 + 50*i)
		s.Quotas[fmt.Sprint("team-", i)] = []Quota{quota}
	}
	for i := range 300 {
		d := demand()
		run := Run{Identity: Identity{Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprint("r", i), Created: noon.Add(-time.Hour)}, Holds: c.Place(d), Claim: d.Claim}
		if i%20 > 0 {
			run.Ends = noon.Add(time.Duration(random.IntN(3600)) * time.Second)
		}
		quota := &s.Quotas[run.Namespace][0]
		quota.Used = quota.Used.plus(d.Claim, 1)
		s.Runs = append(s.Runs, run)
	}
	for i := range 10_000 {
		w := Waiter{
			Identity: Identity{
				Namespace: fmt.Sprint("team-", random.IntN(50)), Name: fmt.Sprint("e", i), Created: noon.Add(-time.Duration(random.IntN(36000)) * time.Second),
				Priority: int32(random.IntN(3)),
			},
			Demand: demand(), Duration: time.Duration(1+random.IntN(7200)) * time.Second,
		}
		if random.IntN(30) == 0 {
			w.Duration = Forever
		}
		s.Waiters = append(s.Waiters, w)
	}
	return s
}

// TestTenThousandQueuedExperimentsAreDecidedWithinASecond has a generous bound, in processor time.
func TestTenThousandQueuedExperimentsAreDecidedWithinASecond(t *testing.T) {
	s := largeSnapshot()
	began := testtool.ProcessorTime(t)
	Decide(s)
	if took := testtool.ProcessorTime(t) - began; took > time.Second {
		t.Errorf("10 000 queued experiments are decided in %s", took)
	}
}
