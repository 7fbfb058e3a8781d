// Package wakeup requests reconciliations of experiments by their names, such as when there may be room for them.
package wakeup

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Channel carries requests to the controller. A nil Channel drops them.
type Channel chan event.GenericEvent

// Wake requests a reconciliation of an experiment, which is not waited for.
func (c Channel) Wake(name types.NamespacedName) {
	select {
	case c <- Event(name):
	default: // the channel is full, and the experiment checks regularly anyway
	}
}

// Event is the event that causes a reconciliation of an experiment.
func Event(name types.NamespacedName) event.GenericEvent {
	return event.GenericEvent{Object: &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}}
}
