// Package scope is the state of one reconciliation of an Experiment. The reconciler makes one from the object that it
// has read and hands it from stage to stage. Stages change the status in it, which the reconciler writes once, at the end.
package scope

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// CreatingNodes is the message of an experiment that may create its nodes.
const CreatingNodes = "creating the nodes"

const (
	// ResyncInterval is the time after which an active experiment is reconciled without an event, so that a lost event only
	// delays a run.
	ResyncInterval = 15 * time.Second
	// FinishedResyncInterval is that of finished experiments, of which there may be many.
	FinishedResyncInterval = 10 * time.Minute
	// PollInterval is the time between two polls of the server while agents start, if it reports no updates.
	PollInterval = time.Second
	// ArmingPoll is the time between two polls while agents confirm their actions.
	ArmingPoll = 300 * time.Millisecond
)

// Scope is the state of one reconciliation. Stages change Experiment.Status, which is written once, at the end.
type Scope struct {
	Experiment *v1alpha1.Experiment
	Now        time.Time
	// Options of the platform for rendering.
	Options render.Options
	// StartingSince is when the experiment got its start slot.
	StartingSince time.Time
	Topology      *topology.Topology
	Timeline      *timeline.Timeline
	// Waveforms by network.
	Waveforms map[string]v1alpha1.WaveformSpec
	// Scenario moves the nodes. It is nil before it is compiled and if the experiment has none.
	Scenario *render.Scenario
	// ConfigMaps are the current versions of those that apps read.
	ConfigMaps []runapi.PlannedConfigMap
	// Scripts from ConfigMaps; nil if they are not needed.
	Scripts map[v1alpha1.KeyReference]string
	// FileBytes are the sizes of files from ConfigMaps; nil if they are not needed.
	FileBytes map[v1alpha1.KeyReference]int
	// Contents of files from ConfigMaps, for virtual machines only; otherwise nil.
	Contents map[v1alpha1.KeyReference][]byte
	// Templates that virtual machines name.
	Templates map[string]v1alpha1.VirtualMachine
	// Pods of the experiment by node, once a stage has loaded them.
	Pods map[string]*corev1.Pod
	// VMs are the virtual machines by node, loaded with the pods; nil if there are none.
	VMs map[string]*kubevirtv1.VirtualMachineInstance
	// ClientSecurity is the Secret for virtual machines whose apps log in to brokers, once it exists.
	ClientSecurity string
	// ServerAddress is for nodes that cannot resolve it, once it is known.
	ServerAddress string
	// LiveChanges and Captures of the experiment, oldest first.
	LiveChanges []*v1alpha1.LiveChange
	Captures    []*v1alpha1.Capture
	// NetworkSpecs are the current radio networks, for the checks of LiveChanges.
	NetworkSpecs map[string]*v1alpha1.RadioNetworkSpec
	// Valid means that the spec has a topology that can be checked further.
	Valid bool
	// Findings are the errors of the spec and its references.
	Findings []Finding

	Events []Event
	// RequeueIn is the time to the next reconciliation, 0 for none.
	RequeueIn time.Duration
	// FinalizerRemoved means that the object may be gone, so that the status must not be written.
	FinalizerRemoved bool
	// Setback is why not all nodes can start now, nil for none. The experiment then goes back to the queue.
	Setback *Setback
	// JustFailed means that this reconciliation found the failure. It must be written before anything acts on it,
	// so that a restarted operator does not revoke it.
	JustFailed bool
	// Unrecoverable means that the failed run's workflow cannot collect results.
	Unrecoverable bool
}

// Setback is a passing reason for which a node was not created, or did not start.
type Setback struct {
	// Reason is that of a failure, if it passes too late. It is empty for a quota, which may refuse a node as long as it wants.
	Reason string
	Err    error
}

// Finding is an error for which an experiment is not accepted.
type Finding struct {
	Reason, Message string
}

// Event is a Kubernetes event, which is sent once the status is written.
type Event struct {
	Kind, Reason, Message string
}

// RequeueAfter requests another reconciliation after d at the latest.
func (s *Scope) RequeueAfter(d time.Duration) {
	d = max(d, 10*time.Millisecond)
	if s.RequeueIn == 0 || d < s.RequeueIn {
		s.RequeueIn = d
	}
}

// EnsureRequeue makes sure that no experiment depends on an event.
func (s *Scope) EnsureRequeue() {
	switch {
	case s.FinalizerRemoved:
	case Finished(s.Phase()) && s.Experiment.DeletionTimestamp.IsZero():
		s.RequeueAfter(FinishedResyncInterval)
	case s.RequeueIn == 0:
		s.RequeueAfter(ResyncInterval)
	}
}

// NormalEvent adds an event.
func (s *Scope) NormalEvent(reason, format string, args ...any) {
	s.Events = append(s.Events, Event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)})
}

// WarningEvent adds a warning.
func (s *Scope) WarningEvent(reason, format string, args ...any) {
	s.Events = append(s.Events, Event{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)})
}

// WarnOnce adds a warning, unless this reconciliation has the same already.
func (s *Scope) WarnOnce(reason, format string, args ...any) {
	event := Event{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)}
	if !slices.Contains(s.Events, event) {
		s.Events = append(s.Events, event)
	}
}

// AddFinding adds an error for which the experiment is not accepted.
func (s *Scope) AddFinding(reason string, err *field.Error) {
	s.Findings = append(s.Findings, Finding{reason, err.Error()})
}

// Phase is the phase of the experiment.
func (s *Scope) Phase() v1alpha1.ExperimentPhase { return s.Experiment.Status.Phase }

// RenderInput is what objects of the experiment are rendered from.
func (s *Scope) RenderInput() render.Input {
	return render.Input{Experiment: s.Experiment, Topology: s.Topology, Waveforms: s.Waveforms, Options: s.Options, Scenario: s.Scenario, Scripts: s.Scripts, FileBytes: s.FileBytes, Contents: s.Contents, Templates: s.Templates, ServerAddress: s.ServerAddress,
		ClientSecurity: s.ClientSecurity}
}

// Elapsed is the time since T0, negative before it. T0 must be set.
func (s *Scope) Elapsed() time.Duration { return s.Now.Sub(s.Experiment.Status.T0.Time) }

// SecondsAfterT0 is the time from T0 to a moment, 0 if that is before, and the time to now if it is unknown.
func (s *Scope) SecondsAfterT0(at time.Time) float64 {
	if at.IsZero() {
		at = s.Now
	}
	return max(at.Sub(s.Experiment.Status.T0.Time), 0).Seconds()
}

// UsesEMANE reports whether a network of the experiment uses EMANE.
func (s *Scope) UsesEMANE() bool {
	return slices.ContainsFunc(s.Experiment.Spec.Networks, func(n v1alpha1.Network) bool { return n.Engine == v1alpha1.EngineEMANE })
}

// UsesVMs reports whether a node of the experiment is a virtual machine.
func (s *Scope) UsesVMs() bool {
	return slices.ContainsFunc(s.Experiment.Spec.Nodes, func(n v1alpha1.Node) bool { return n.Runtime == v1alpha1.RuntimeVM })
}

// FirstNodeCreated is when the first of the experiment's nodes was created, zero if it has none.
func (s *Scope) FirstNodeCreated() (first time.Time) {
	var objects []metav1.Object
	for _, pod := range s.Pods {
		objects = append(objects, pod)
	}
	for _, vm := range s.VMs {
		objects = append(objects, vm)
	}
	for _, object := range objects {
		if at := object.GetCreationTimestamp().Time; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Finished reports whether an experiment in this phase is over.
func Finished(phase v1alpha1.ExperimentPhase) bool {
	return phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseFailed
}

// Shorten cuts messages to what events accept.
func Shorten(message string) string { return wording.Shorten(message, 1000) }

// SomeOf lists the first names and the number of the others.
func SomeOf(names []string, what string) string {
	const shown = 3
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return wording.Some(names, shown) + " " + what
}

// SortedKeys are the keys of a map in order.
func SortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
