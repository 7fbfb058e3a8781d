package experiment

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/timeline"
	"vignette.dev/vignette/operators/experiment/topology"
)

// scope is the state of one reconciliation. Stages change experiment.Status, which is written once, at the end.
type scope struct {
	experiment *v1alpha1.Experiment
	now        time.Time
	// startingSince is when the experiment got its start slot.
	startingSince time.Time
	topology      *topology.Topology
	timeline      *timeline.Timeline
	// waveforms by network.
	waveforms map[string]v1alpha1.WaveformSpec
	// scenario moves the nodes. It is nil before it is compiled and if the experiment has none.
	scenario *render.Scenario
	// configMaps are the current versions of those that apps read.
	configMaps []runapi.PlannedConfigMap
	// scripts from ConfigMaps; nil if they are not needed.
	scripts map[v1alpha1.KeyReference]string
	// fileBytes are the sizes of files from ConfigMaps; nil if they are not needed.
	fileBytes map[v1alpha1.KeyReference]int
	// pods of the experiment by node, once a stage has loaded them.
	pods map[string]*corev1.Pod
	// vms are the virtual machines by node, loaded with the pods; nil if there are none.
	vms map[string]*kubevirtv1.VirtualMachineInstance
	// templates that virtual machines name.
	templates map[string]v1alpha1.VirtualMachine
	// contents of files from ConfigMaps, for virtual machines only; otherwise nil.
	contents map[v1alpha1.KeyReference][]byte
	// clientSecurity is the Secret for virtual machines whose apps log in to brokers, once it exists.
	clientSecurity string
	// serverAddress is for nodes that cannot resolve it, once it is known.
	serverAddress string
	// live are the experiment's LiveChanges and Captures.
	live liveObjects
	// networkSpecs are the current radio networks, for the checks of LiveChanges.
	networkSpecs map[string]*v1alpha1.RadioNetworkSpec
	// findings are the errors of the spec and its references.
	findings []finding

	events []pendingEvent
	// requeueIn is the time to the next reconciliation, 0 for none.
	requeueIn time.Duration
	// finalizerRemoved means that the object may be gone, so that the status must not be written.
	finalizerRemoved bool
	// justFailed means that this reconciliation found the failure. It must be written before anything acts on it,
	// so that a restarted operator does not revoke it.
	justFailed bool
	// unrecoverable means that the failed run's workflow cannot collect results.
	unrecoverable bool
	// options of the platform for rendering.
	options render.Options
}

type pendingEvent struct {
	kind, reason, message string
}

// requeueAfter requests another reconciliation after d at the latest.
func (s *scope) requeueAfter(d time.Duration) {
	d = max(d, 10*time.Millisecond)
	if s.requeueIn == 0 || d < s.requeueIn {
		s.requeueIn = d
	}
}

func (s *scope) normalEvent(reason, format string, args ...any) {
	s.events = append(s.events, pendingEvent{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)})
}

func (s *scope) warningEvent(reason, format string, args ...any) {
	s.events = append(s.events, pendingEvent{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)})
}

func (s *scope) phase() v1alpha1.ExperimentPhase { return s.experiment.Status.Phase }

func (s *scope) renderInput() render.Input {
	return render.Input{Experiment: s.experiment, Topology: s.topology, Options: s.options, Scenario: s.scenario, Scripts: s.scripts, FileBytes: s.fileBytes, Contents: s.contents, Templates: s.templates, ServerAddress: s.serverAddress,
		ClientSecurity: s.clientSecurity}
}

// elapsed is the time since T0, negative before it. T0 must be set.
func (s *scope) elapsed() time.Duration { return s.now.Sub(s.experiment.Status.T0.Time) }
