// Package queue decides which of the waiting experiments start: all of them at once, from what the cluster has, what runs
// and who waits. It is pure: equal snapshots give equal decisions, and a restarted operator decides as the one before it.
//
// # Order
//
// An experiment's place is that of its arrival, less PriorityStep for each step of its priority. So within a priority who came first
// is first; and nobody is overtaken for ever: only who came within (difference of priorities) × PriorityStep after it
// can be put before an experiment, and those are finitely many.
//
// # Passing
//
// The first experiments that find no room get a plan: the earliest moment at which there is room, by the known ends of what runs, and
// a place for it. Whoever comes after them starts only beside these plans, or is over before they begin: conservative backfilling
// (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001) of the first Depth of each kind. So the first of all never starts later than it
// would alone, as long as what runs ends in time. Whoever lacks only its own team's quota has a plan in that quota and none in the cluster,
// and is in no other team's way.
//
// A live cluster has no end. An experiment that has to wait for one has its place where those that came before it are gone:
// whatever ends some day may pass it, another live cluster only beside it.
package queue

import (
	"math"
	"time"
)

// Reasons of Admitted=False, and of True.
const (
	// ReasonQuotaTooSmall: it never fits, whatever else ends.
	ReasonQuotaTooSmall = "QuotaTooSmall"
	// ReasonClusterTooSmall: not even the empty cluster has room.
	ReasonClusterTooSmall = "ClusterTooSmall"
	// ReasonNoRoom: it fits once something else has ended.
	ReasonNoRoom = "NoRoom"
	// ReasonQuotaRefused: there seemed to be room, and yet the API server refused a pod for a quota's sake.
	ReasonQuotaRefused = "QuotaRefused"
	// ReasonWaitingForTurn: others come first, and it would delay them.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonAdmitted: there is room.
	ReasonAdmitted = "Admitted"
)

const (
	// PriorityStep is what one step of priority is worth in time of waiting.
	PriorityStep = 10 * time.Minute
	// Depth is how many experiments that wait for the cluster, and how many of each team that wait for its quota, have plans; those that
	// wait for live clusters are counted by themselves.
	Depth = 4
	// Overrun is what one that should have ended is given each time.
	Overrun = time.Minute
)

// Amount of each kind of resource, in the order of a Space; kinds beyond its length are zero.
type Amount []int64

// Shape is a number of equal pods.
type Shape struct {
	Count int64
	Each  Amount
}

// Demand of an experiment: all of it, or nothing.
type Demand struct {
	// Shapes of its pods, the largest first.
	Shapes []Shape
	// Total of all pods.
	Total Amount
	// Claim on each quota of its namespace, the workflow's pod included.
	Claim Claim
	// bound is as many pods, each as large as the largest in every kind: where they fit, the demand does.
	bound Shape
	// hash tells equal demands.
	hash uint64
}

// Kinds of resources that a quota counts.
const (
	ClaimPods = iota
	ClaimRequestsCPU
	ClaimRequestsMemory
	ClaimRequestsStorage
	ClaimLimitsCPU
	ClaimLimitsMemory
	claimKinds
)

// Claim on a quota: pods, millicores, bytes.
type Claim [claimKinds]int64

// Unlimited is what a quota has of a kind that it does not count, or a host of a kind that it does not tell.
const Unlimited = math.MaxInt64 / 4

// Quota of a namespace.
type Quota struct {
	Name       string
	Hard, Used Claim
}

// Host takes pods.
type Host struct {
	Name              string
	Allocatable, Free Amount
}

// Holding is what is taken of a host, by its index.
type Holding struct {
	Host  int
	Taken Amount
}

// Identity of an experiment, and what its place goes by.
type Identity struct {
	Namespace, Name string
	Created         time.Time
	Priority        int32
}

// Before tells that an experiment comes before another one in the queue.
func (i *Identity) Before(other *Identity) bool {
	mine, others := i.orderKey(), other.orderKey()
	switch {
	case mine != others:
		return mine < others
	case i.Namespace != other.Namespace:
		return i.Namespace < other.Namespace
	}
	return i.Name < other.Name
}

func (i *Identity) orderKey() int64 {
	return i.Created.UnixNano() - int64(i.Priority)*int64(PriorityStep)
}

// Run is an experiment that holds room: Host.Free and Quota.Used are without it.
type Run struct {
	Identity
	// Started is when it was admitted.
	Started time.Time
	// Ends is when it gives its room back; zero where nobody knows.
	Ends  time.Time
	Holds []Holding
	Claim Claim
}

// overtook tells that a run was let past one that waits.
func (r *Run) overtook(w *Waiter) bool { return w.Before(&r.Identity) && !r.Started.Before(w.Created) }

// Waiter is an experiment that waits.
type Waiter struct {
	Identity
	Demand *Demand
	// Duration from the start until its room is given back; Forever for a live cluster.
	Duration time.Duration
	// Reservation that the decision before this one made for it; nil for none.
	Reservation *Reservation
	// Refused tells that the API server refused its pods for a quota's sake, and that it is to be tried later: until then
	// none of its team passes it.
	Refused bool
}

// Forever is how long a live cluster lasts.
const Forever = time.Duration(math.MaxInt64)

// Snapshot of the cluster.
type Snapshot struct {
	Now   time.Time
	Kinds *ResourceKinds
	Hosts []Host
	// Quotas by namespace.
	Quotas  map[string][]Quota
	Runs    []Run
	Waiters []Waiter
}

// Reservation of one that waits: where its room is kept. Given back with the next snapshot it makes sure that the room is found again: pods are placed
// by a rule of thumb, which may fail to place unequal ones where it succeeded before, though no host has less free.
type Reservation struct{ rooms []reservedRoom }

type reservedRoom struct {
	host  string
	taken Amount
}

// Decision on a waiting experiment.
type Decision struct {
	Admitted        bool
	Reason, Message string
	// Position in the queue, from 1; 0 for what can never start.
	Position int
	// ExpectedStart is when it will start at the latest, if what runs ends in time; zero where nobody knows.
	ExpectedStart time.Time
	// Reservation to be given back with the next snapshot; nil for none.
	Reservation *Reservation
	// searched tells that it is among the first, whose start was looked for; firm that it was found, and its room in the cluster is kept.
	searched, reserved bool
	// holds is where its pods were placed, if it was admitted.
	holds []Holding
}
