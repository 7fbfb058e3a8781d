// Package queue decides which of the waiting experiments start. It is a pure function of a snapshot of the cluster, the runs
// and the waiting experiments, so a restarted operator decides like the one before it.
//
// # Order
//
// An experiment's place is given by its arrival minus PriorityStep for each step of its priority. Within a priority the
// first to arrive is first. Nobody is overtaken for ever: only experiments that arrive within (difference of priorities)
// × PriorityStep after it can come before an experiment, and those are finitely many.
//
// # Overtaking
//
// The first experiments that find no room get a reservation, which is the earliest time with room by the known ends of the
// runs, and a place on the hosts. Later experiments start only beside these reservations, or if they end before them. That
// is conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001) of the first Depth of each kind. So the first
// of all never starts later than it would alone, if all runs end in time. An experiment that lacks only its own team's quota
// has a reservation in that quota and none in the cluster, and does not delay other teams.
//
// A live cluster has no end. An experiment that must wait for one has its place where those that came before it are gone.
// Experiments that end may overtake it, another live cluster only beside it.
package queue

import (
	"math"
	"time"
)

// Reasons of Admitted=False, and of True.
const (
	// ReasonQuotaTooSmall means that it never fits into the quota, whatever else ends.
	ReasonQuotaTooSmall = "QuotaTooSmall"
	// ReasonClusterTooSmall means that not even the empty cluster has room.
	ReasonClusterTooSmall = "ClusterTooSmall"
	// ReasonNoRoom means that it fits once something else has ended.
	ReasonNoRoom = "NoRoom"
	// ReasonQuotaRefused means that the API server refused a pod because of a quota, although there seemed to be room.
	ReasonQuotaRefused = "QuotaRefused"
	// ReasonWaitingForTurn means that others come first, and it would delay them.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonAdmitted means that there is room.
	ReasonAdmitted = "Admitted"
)

const (
	// PriorityStep is the waiting time that one step of priority is worth.
	PriorityStep = 10 * time.Minute
	// Depth is how many experiments have reservations, of those that wait for the cluster, and of each team that waits for
	// its quota. Those that wait for live clusters are counted separately.
	Depth = 4
	// Overrun is how much longer a run is assumed to take that should have ended.
	Overrun = time.Minute
)

// Amount of each kind of resource, in the order of ResourceKinds. Kinds beyond its length are zero.
type Amount []int64

// Shape is a number of equal pods.
type Shape struct {
	Count int64
	Each  Amount
}

// Demand of an experiment, which gets all of it or nothing.
type Demand struct {
	// Shapes of its nodes' pods and the workflow's, largest first.
	Shapes []Shape
	// Total of all pods.
	Total Amount
	// Claim on each quota of its namespace.
	Claim Claim
	// emanePods are those of Shapes that are EMANE's.
	emanePods int64
	// bound is as many pods, each as large as the largest in every kind. If they fit, the demand fits.
	bound Shape
	// hash is equal for equal demands.
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

// Unlimited is the amount of a kind that a quota does not count or a host does not report.
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

// Holding is an amount taken from a host, by its index.
type Holding struct {
	Host  int
	Taken Amount
}

// Identity of an experiment, which determines its place.
type Identity struct {
	Namespace, Name string
	Created         time.Time
	Priority        int32
}

// Before reports whether an experiment comes before another one in the queue.
func (i *Identity) Before(other *Identity) bool {
	key, otherKey := i.orderKey(), other.orderKey()
	switch {
	case key != otherKey:
		return key < otherKey
	case i.Namespace != other.Namespace:
		return i.Namespace < other.Namespace
	}
	return i.Name < other.Name
}

func (i *Identity) orderKey() int64 {
	return i.Created.UnixNano() - int64(i.Priority)*int64(PriorityStep)
}

// Run is an experiment that holds room, which Host.Free and Quota.Used already reflect.
type Run struct {
	Identity
	// Started is when it was admitted.
	Started time.Time
	// Ends is when it returns its room, zero if unknown.
	Ends  time.Time
	Holds []Holding
	Claim Claim
}

// overtook reports whether a run has overtaken a waiting experiment.
func (r *Run) overtook(w *Waiter) bool { return w.Before(&r.Identity) && !r.Started.Before(w.Created) }

// Waiter is an experiment that waits.
type Waiter struct {
	Identity
	Demand *Demand
	// Duration is the time from the start until its room is returned, Forever for a live cluster.
	Duration time.Duration
	// Reservation is that of the last decision, nil for none.
	Reservation *Reservation
	// Refused means that the API server refused its pods because of a quota and it will be tried again later. Until then
	// no other experiment of its team overtakes it.
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

// Reservation is the reserved room of a waiting experiment. It goes into the next snapshot so that the room is found again.
// The placement is a heuristic, which may fail for unequal pods where it succeeded before.
type Reservation struct{ rooms []reservedRoom }

type reservedRoom struct {
	host  string
	taken Amount
}

// Decision on a waiting experiment.
type Decision struct {
	Admitted        bool
	Reason, Message string
	// Position in the queue, from 1; 0 for an experiment that can never start.
	Position int
	// ExpectedStart is when it starts at the latest if all runs end in time, zero if unknown.
	ExpectedStart time.Time
	// Reservation is for the next snapshot, nil for none.
	Reservation *Reservation
	// searched means that it is among the first, for which a start was searched. reserved means that its room is reserved.
	searched, reserved bool
	// holds is the place of its pods, if it was admitted.
	holds []Holding
}
