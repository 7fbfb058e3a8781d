package runapi

// MaxEvents of one request.
const MaxEvents = 256

// KubernetesEvent is a line of a run's events.jsonl, in the order in which they became known. It is an event of the Experiment,
// its pods, its Workflow and the Workflow's pods, its RadioNetworks, or the pods of EMANE. A repeated event has another line
// with the new count.
type KubernetesEvent struct {
	// TimeNanoseconds of the last occurrence, Unix epoch, by the reporter's clock. Most reporters give whole seconds.
	TimeNanoseconds int64 `json:"ts"`
	// UID of the Event object, which the lines of one event share.
	UID string `json:"uid"`
	// Type is Normal or Warning.
	Type   string      `json:"type"`
	Reason string      `json:"reason"`
	Object EventObject `json:"object"`
	// Node whose pod the object is; empty for other objects.
	Node string `json:"node,omitempty"`
	// Host is the Kubernetes node that reported it, if any.
	Host    string `json:"host,omitempty"`
	Message string `json:"message"`
	// Count of occurrences so far, 1 or more.
	Count int32 `json:"count"`
}

// EventObject is what an event is about.
type EventObject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}
