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

// scope is what one reconciliation works with. Phases change experiment.Status; it is written once, at the end.
type scope struct {
	experiment *v1alpha1.Experiment
	now        time.Time
	// startingSince is when it was the experiment's turn to come up.
	startingSince time.Time
	topology      *topology.Topology
	timeline      *timeline.Timeline
	// waveforms by the network's name.
	waveforms map[string]v1alpha1.WaveformSpec
	// scenario that moves the nodes, once it is compiled; nil where the experiment has none.
	scenario *render.Scenario
	// configMaps that apps take content from, as they are now.
	configMaps []runapi.PlannedConfigMap
	// scripts that are in ConfigMaps; nil where they are not needed.
	scripts map[v1alpha1.KeyReference]string
	// fileBytes are the sizes of what apps take from ConfigMaps; nil where they are not needed.
	fileBytes map[v1alpha1.KeyReference]int
	// pods of the experiment by the node's name, once a phase has loaded them.
	pods map[string]*corev1.Pod
	// vms are its virtual machines by the node's name, loaded with the pods; nil where no node is one.
	vms map[string]*kubevirtv1.VirtualMachineInstance
	// templates that virtual machines name.
	templates map[string]v1alpha1.VirtualMachine
	// contents of what apps take from ConfigMaps, where virtual machines are to be given it; nil elsewhere.
	contents map[v1alpha1.KeyReference][]byte
	// clientSecurity is the Secret for virtual machines with clients of brokers with security, once it is there.
	clientSecurity string
	// serverAddress for nodes that cannot look it up, once it is known.
	serverAddress string
	// live is what people do to the experiment beside its spec.
	live liveObjects
	// networkSpecs are the radio networks as they are, where changes made by hand are to be judged.
	networkSpecs map[string]*v1alpha1.RadioNetworkSpec
	// findings of the spec and of what it refers to; none in a good experiment.
	findings []finding

	events []pendingEvent
	// requeueIn is the shortest time after which to come back; 0 for none.
	requeueIn time.Duration
	// finalizerRemoved tells that the finalizer is off and there is no status to write any more.
	finalizerRemoved bool
	// justFailed tells that the failure was found in this reconciliation: it is written before anybody acts on it,
	// so that a restarted operator does not take it back.
	justFailed bool
	// unrecoverable tells that nothing more can come of the failed run's workflow.
	unrecoverable bool
	// options of the platform for rendering.
	options render.Options
}

type pendingEvent struct {
	kind, reason, message string
}

// requeueAfter asks for another reconciliation at the latest then.
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

// elapsed since T0; negative before it. T0 must be set.
func (s *scope) elapsed() time.Duration { return s.now.Sub(s.experiment.Status.T0.Time) }
