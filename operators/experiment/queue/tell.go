package queue

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// named is up to which position those that wait are told who comes first. Beyond it messages stay the same while the queue
// moves on: each new message is a write, and the queue may be long.
const named = 10

// neverFits tells what can never start, whatever else ends.
func (d *decision) neverFits(w *Waiter, verdict *Verdict) bool {
	for i := range d.team(w.Namespace).quotas {
		quota := &d.team(w.Namespace).quotas[i]
		for of := range quota.Hard {
			if want := w.Demand.Claim[of]; want > quota.Hard[of] {
				verdict.Reason, verdict.Message = ReasonQuotaTooSmall, fmt.Sprintf("quota %s allows %s of %s in all, and %d nodes%s need %s",
					quota.Name, amountOf(of, quota.Hard[of]), claimNames[of], w.Demand.nodes(), andWorkflow(of), amountOf(of, want))
				return true
			}
		}
	}
	if len(d.Hosts) == 0 || d.fitsBare(w) {
		return false
	}
	message, known := d.hopeless[w.Demand.print]
	if !known {
		d.scratch.copyFrom(d.empty)
		if _, placed, ok := d.scratch.place(w.Demand); !ok {
			message = d.capacity(w.Demand, d.empty, placed, "even when empty, the cluster's")
		}
		d.hopeless[w.Demand.print] = message
	}
	if message != "" {
		verdict.Reason, verdict.Message = ReasonClusterTooSmall, message
	}
	return message != ""
}

// fitsBare tells that there is room once all experiments are gone.
func (d *decision) fitsBare(w *Waiter) bool {
	fits, known := d.fitting[w.Demand.print]
	if !known {
		fits = d.bare.fits(w.Demand, d.scratch)
		d.fitting[w.Demand.print] = fits
	}
	return fits
}

func (d *decision) tell(w *Waiter, t *team, o obstacle, verdict *Verdict) {
	planned := o.kind == quotaPlanned || o.kind == clusterPlanned
	switch {
	case o.kind == none:
		verdict.Reason, verdict.Message = ReasonAdmitted, fmt.Sprintf("there is room for all %d nodes", w.Demand.nodes())
	case planned && verdict.Position <= named:
		verdict.Reason = ReasonWaitingForTurn
		verdict.Message = fmt.Sprintf("experiment %s/%s comes first, and would be delayed", o.first.Namespace, o.first.Name)
	case !planned && verdict.first && o.kind == quotaFull:
		verdict.Reason, verdict.Message = ReasonNoRoom, d.quotaMessage(w, t, o)
	case !planned && verdict.first, o.kind == clusterFull && !d.fitsBare(w):
		d.scratch.copyFrom(d.free)
		_, placed, _ := d.scratch.place(w.Demand)
		verdict.Reason, verdict.Message = ReasonNoRoom, d.capacity(w.Demand, d.free, placed, "at present the cluster's")
	case o.kind == quotaFull || o.kind == quotaPlanned:
		verdict.Reason, verdict.Message = ReasonWaitingForTurn, "others of the namespace come first, and wait for its quota"
	default:
		verdict.Reason, verdict.Message = ReasonWaitingForTurn, "others come first, and wait for room in the cluster"
	}
}

func (d *decision) tellRefused(w *Waiter, t *team, verdict *Verdict) {
	verdict.Reason = ReasonWaitingForTurn
	if w.Refused {
		verdict.Reason = ReasonQuotaRefused // its message is that of the refusal
		return
	}
	verdict.Message = "others of the namespace come first, and wait for its quota"
	if verdict.Position <= named {
		verdict.Message = fmt.Sprintf("experiment %s/%s comes first, whose nodes the API server refused for a quota's sake", t.refused.Namespace, t.refused.Name)
	}
}

func (d *decision) quotaMessage(w *Waiter, t *team, o obstacle) string {
	quota := &t.quotas[o.quota]
	return fmt.Sprintf("quota %s has %s of %s free (of %s), and %d nodes%s need %s", quota.Name, amountOf(o.of, t.free[o.quota][o.of]),
		claimNames[o.of], amountOf(o.of, quota.Hard[o.of]), w.Demand.nodes(), andWorkflow(o.of), amountOf(o.of, w.Demand.Claim[o.of]))
}

func (d *decision) capacity(demand *Demand, free *table, placed int64, lead string) string {
	of := func(amount Amount, kind int, format resource.Format) string {
		return resource.NewQuantity(amount.of(kind), format).String()
	}
	milli := func(amount Amount) string {
		return resource.NewMilliQuantity(amount.of(kindCPU), resource.DecimalSI).String()
	}
	return fmt.Sprintf("%s %d schedulable hosts take %d of %d nodes: all need cpu %s and memory %s, free are cpu %s, memory %s and %s pods",
		lead, len(d.Hosts), placed, demand.nodes(), milli(demand.Total), of(demand.Total, kindMemory, resource.BinarySI),
		milli(free.total), of(free.total, kindMemory, resource.BinarySI), of(free.total, kindPods, resource.DecimalSI))
}

func (d *Demand) nodes() (count int64) {
	for _, shape := range d.Shapes {
		count += shape.Count
	}
	return count
}

// claimNames as a quota has them.
var claimNames = [claimKinds]corev1.ResourceName{
	ClaimPods: corev1.ResourcePods, ClaimRequestsCPU: corev1.ResourceRequestsCPU, ClaimRequestsMemory: corev1.ResourceRequestsMemory,
	ClaimRequestsStorage: corev1.ResourceRequestsEphemeralStorage, ClaimLimitsCPU: corev1.ResourceLimitsCPU, ClaimLimitsMemory: corev1.ResourceLimitsMemory,
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

func andWorkflow(claim int) string {
	if claim == ClaimPods {
		return " and the workflow"
	}
	return ""
}
