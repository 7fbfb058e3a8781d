package runapi

// MaxEvents of one request.
const MaxEvents = 256

// KubernetesEvent is a line of a run's events.jsonl, in the order in which they became known: what Kubernetes said of an object of a run: of the Experiment, its pods, its Workflow and the pods of that, its
// RadioNetworks and the pods of EMANE. An event that came again has another line with the new count.
type KubernetesEvent struct {
	// TimeNanoseconds is when it came last, Unix epoch, by the clock of whoever reported it. Most reporters give whole seconds.
	TimeNanoseconds int64 `json:"ts"`
	// UID of the Event object: lines of one event have the same.
	UID string `json:"uid"`
	// Type is Normal or Warning.
	Type   string      `json:"type"`
	Reason string      `json:"reason"`
	Object EventObject `json:"object"`
	// Node whose pod the object is; empty for everything else.
	Node string `json:"node,omitempty"`
	// Host is the Kubernetes node that reported it, if one did.
	Host    string `json:"host,omitempty"`
	Message string `json:"message"`
	// Count of how often it has come so far, 1 or more.
	Count int32 `json:"count"`
}

// EventObject is what an event is about.
type EventObject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}
