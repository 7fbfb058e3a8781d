package queue

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxNamedPosition is the last position whose message names the experiment before it. Later messages do not change while
// the queue advances, because each new message is a write.
const maxNamedPosition = 10

// neverFits decides on an experiment that can never start, whatever else ends.
func (d *planner) neverFits(w *Waiter, decision *Decision) bool {
	for i := range d.team(w.Namespace).quotas {
		quota := &d.team(w.Namespace).quotas[i]
		for of := range quota.Hard {
			if want := w.Demand.Claim[of]; want > quota.Hard[of] {
				decision.Reason, decision.Message = ReasonQuotaTooSmall, fmt.Sprintf("quota %s allows %s of %s in all, and %s need %s",
					quota.Name, amountOf(of, quota.Hard[of]), claimNames[of], w.Demand.takers(), amountOf(of, want))
				return true
			}
		}
	}
	if len(d.Hosts) == 0 || d.fitsWithoutExperiments(w) {
		return false
	}
	message, known := d.tooLarge[w.Demand.hash]
	if !known {
		d.scratch.copyFrom(d.empty)
		if _, placed, ok := d.scratch.place(w.Demand); !ok {
			message = d.capacityMessage(w.Demand, d.empty, placed, "even when empty, the cluster's")
		}
		d.tooLarge[w.Demand.hash] = message
	}
	if message != "" {
		decision.Reason, decision.Message = ReasonClusterTooSmall, message
	}
	return message != ""
}

// fitsWithoutExperiments reports whether there is room once all experiments are gone.
func (d *planner) fitsWithoutExperiments(w *Waiter) bool {
	fits, known := d.fitsCache[w.Demand.hash]
	if !known {
		fits = d.withoutExperiments.fits(w.Demand, d.scratch)
		d.fitsCache[w.Demand.hash] = fits
	}
	return fits
}

func (d *planner) explain(w *Waiter, t *team, o obstacle, decision *Decision) {
	planned := o.kind == quotaReserved || o.kind == clusterReserved
	switch {
	case o.kind == noObstacle:
		decision.Reason, decision.Message = ReasonAdmitted, fmt.Sprintf("there is room for all %d nodes", w.Demand.nodes())
	case planned && decision.Position <= maxNamedPosition:
		decision.Reason = ReasonWaitingForTurn
		decision.Message = o.reservedFor.seenFrom(w.Namespace) + " comes first, and would be delayed"
	case !planned && decision.searched && o.kind == quotaFull:
		decision.Reason, decision.Message = ReasonNoRoom, d.quotaMessage(w, t, o)
	case !planned && decision.searched, o.kind == clusterFull && !d.fitsWithoutExperiments(w):
		d.scratch.copyFrom(d.free)
		_, placed, _ := d.scratch.place(w.Demand)
		decision.Reason, decision.Message = ReasonNoRoom, d.capacityMessage(w.Demand, d.free, placed, "at present the cluster's")
	case o.kind == quotaFull || o.kind == quotaReserved:
		decision.Reason, decision.Message = ReasonWaitingForTurn, "others of the namespace come first, and wait for its quota"
	default:
		decision.Reason, decision.Message = ReasonWaitingForTurn, "others come first, and wait for room in the cluster"
	}
}

// seenFrom names an experiment to the users of a namespace, who may not learn names of others.
func (i *Identity) seenFrom(namespace string) string {
	if i.Namespace != namespace {
		return "an experiment of another namespace"
	}
	return "experiment " + i.Namespace + "/" + i.Name
}

func (d *planner) explainRefused(w *Waiter, t *team, decision *Decision) {
	decision.Reason = ReasonWaitingForTurn
	if w.Refused {
		decision.Reason = ReasonQuotaRefused // its message is that of the refusal
		return
	}
	decision.Message = "others of the namespace come first, and wait for its quota"
	if decision.Position <= maxNamedPosition {
		decision.Message = fmt.Sprintf("experiment %s/%s comes first, whose nodes could not all be started", t.refused.Namespace, t.refused.Name)
	}
}

func (d *planner) quotaMessage(w *Waiter, t *team, o obstacle) string {
	quota := &t.quotas[o.quota]
	return fmt.Sprintf("quota %s has %s of %s free (of %s), and %s need %s", quota.Name, amountOf(o.claim, t.free[o.quota][o.claim]),
		claimNames[o.claim], amountOf(o.claim, quota.Hard[o.claim]), w.Demand.takers(), amountOf(o.claim, w.Demand.Claim[o.claim]))
}

func (d *planner) capacityMessage(demand *Demand, free *freeTable, placed int64, lead string) string {
	of := func(amount Amount, kind int, format resource.Format) string {
		return resource.NewQuantity(amount.of(kind), format).String()
	}
	milli := func(amount Amount) string {
		return resource.NewMilliQuantity(amount.of(kindCPU), resource.DecimalSI).String()
	}
	return fmt.Sprintf("%s %d schedulable hosts take %d of %d pods: %s need cpu %s and memory %s, free are cpu %s, memory %s and %s pods",
		lead, len(d.Hosts), placed, demand.pods(), demand.onHosts(), milli(demand.Total), of(demand.Total, kindMemory, resource.BinarySI),
		milli(free.total), resource.NewQuantity(Amount(free.total).of(kindMemory)>>20<<20, resource.BinarySI), of(free.total, kindPods, resource.DecimalSI))
}

func (d *Demand) pods() (count int64) {
	for _, shape := range d.Shapes {
		count += shape.Count
	}
	return count
}

func (d *Demand) nodes() int64 { return d.pods() - workflowPods - d.emanePods }

// takers names the pods that claim the quota.
func (d *Demand) takers() string { return fmt.Sprintf("%d nodes and the workflow", d.nodes()) }

// onHosts names the pods that take room on hosts.
func (d *Demand) onHosts() string {
	if d.emanePods == 0 {
		return d.takers()
	}
	return fmt.Sprintf("%d nodes, the workflow and EMANE", d.nodes())
}

// claimNames are the names of the kinds in a quota.
var claimNames = [claimKinds]corev1.ResourceName{
	ClaimPods: corev1.ResourcePods, ClaimRequestsCPU: corev1.ResourceRequestsCPU, ClaimRequestsMemory: corev1.ResourceRequestsMemory,
	ClaimRequestsStorage: corev1.ResourceRequestsEphemeralStorage, ClaimLimitsCPU: corev1.ResourceLimitsCPU, ClaimLimitsMemory: corev1.ResourceLimitsMemory,
}

// ClaimText returns the name of a kind in a quota, and an amount of it as people write it.
func ClaimText(claim int, value int64) (name, amount string) {
	return string(claimNames[claim]), amountOf(claim, value)
}

func amountOf(claim int, value int64) string {
	switch claim {
	case ClaimRequestsCPU, ClaimLimitsCPU:
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	case ClaimPods:
		return resource.NewQuantity(value, resource.DecimalSI).String()
	}
	return resource.NewQuantity(value, resource.BinarySI).String()
}
