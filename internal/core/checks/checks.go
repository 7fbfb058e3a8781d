// Package checks decides whether an experiment that the API server accepts is accepted by the platform. It is one chain of
// pure functions, for `vignette validate`, the console and the controller.
package checks

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Reasons of Accepted=False.
const (
	ReasonInvalid         = "Invalid"
	ReasonBaseMismatch    = "BaseMismatch"
	ReasonRadioMismatch   = "RadioMismatch"
	ReasonScriptInvalid   = "ScriptInvalid"
	ReasonPayloadTooLarge = "PayloadTooLarge"
)

// Finding is an error for which an experiment is not accepted.
type Finding struct {
	Reason string
	Error  *field.Error
}

// Subject is what is checked: an experiment, with what is known of the objects that it names.
type Subject struct {
	// Input has the topology of a spec without errors.
	render.Input
	// Refused reports whether an error was found before, so that its pods need not be valid.
	Refused bool
}

// check finds errors, which have one reason.
type check struct {
	reason string
	find   func(*Subject) field.ErrorList
}

// ofSpec are the checks of a spec whose fields are valid, in order.
var ofSpec = []check{
	{ReasonInvalid, func(s *Subject) field.ErrorList { return s.Topology.CheckReferences(&s.Experiment.Spec) }},
	{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckRadio(&s.Experiment.Spec, s.Topology) }},
	{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckMessaging(&s.Experiment.Spec, s.Topology) }},
	{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckEncodings(&s.Experiment.Spec) }},
	{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckPlatforms(&s.Experiment.Spec, s.Topology) }},
	{ReasonInvalid, func(s *Subject) field.ErrorList {
		_, errs := timeline.Compile(&s.Experiment.Spec, s.Topology)
		return errs
	}},
}

// ofReferences are the checks that need the objects that a spec names, in order. They overlook unknown objects.
var ofReferences = []check{
	{ReasonPayloadTooLarge, func(s *Subject) field.ErrorList { return render.CheckPayloads(s.Input) }},
	{ReasonScriptInvalid, func(s *Subject) field.ErrorList { return render.CheckScripts(s.Input) }},
	{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckVia(s.Input) }},
	{ReasonBaseMismatch, func(s *Subject) field.ErrorList { return render.CheckBase(&s.Experiment.Spec, s.Waveforms) }},
	{ReasonRadioMismatch, func(s *Subject) field.ErrorList {
		return render.CheckRadioModels(&s.Experiment.Spec, s.Topology, s.Waveforms, s.Scenario)
	}},
	{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckScenarioPlatforms(&s.Experiment.Spec, s.Scenario) }},
	{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckVMs(s.Input) }},
}

// clients is the check of what clients would refuse by their nodes' names. Only a spec without errors has them.
var clients = check{ReasonInvalid, func(s *Subject) field.ErrorList { return render.CheckClients(s.Input) }}

// size is the check that all pods fit into the API server, and apps into their nodes. Only a spec without errors has pods.
var size = check{ReasonInvalid, func(s *Subject) field.ErrorList {
	pods := render.Pods(s.Input)
	return append(render.CheckSize(pods, &s.Experiment.Spec), render.CheckNodeResources(pods, &s.Experiment.Spec, s.Topology)...)
}}

// Compiled is what follows from a spec alone.
type Compiled struct {
	Topology *topology.Topology
	Timeline *timeline.Timeline
	Findings []Finding
	// Valid reports whether its fields are valid, so that its topology can be checked further.
	Valid bool
}

// Spec compiles and checks a spec alone.
func Spec(e *v1alpha1.Experiment, options render.Options) *Compiled {
	c := &Compiled{}
	var errs field.ErrorList
	c.Topology, errs = topology.Expand(&e.Spec)
	c.Timeline, _ = timeline.Compile(&e.Spec, c.Topology)
	c.Findings = findings(ReasonInvalid, append(errs, render.Check(&e.Spec)...))
	if c.Valid = len(c.Findings) == 0; !c.Valid {
		return c
	}
	s := &Subject{Input: render.Input{Experiment: e, Topology: c.Topology, Options: options}}
	if c.Findings = s.run(ofSpec); len(c.Findings) == 0 {
		c.Findings = s.run([]check{clients, size})
	}
	return c
}

// References checks a valid spec with the objects that it names.
func References(s *Subject) []Finding {
	found := s.run(ofReferences)
	if !s.Refused && len(found) == 0 && len(s.Scripts) > 0 { // pods contain them
		found = s.run([]check{{ReasonScriptInvalid, size.find}})
	}
	return found
}

// All are the errors of a spec, with the objects that it names.
func All(s *Subject) field.ErrorList {
	c := Spec(s.Experiment, s.Options)
	found := c.Findings
	if c.Valid {
		s.Topology, s.Refused = c.Topology, s.Refused || len(found) > 0
		found = append(found, References(s)...)
	}
	var errs field.ErrorList
	for _, f := range found {
		errs = append(errs, f.Error)
	}
	return errs
}

// Alone are the errors of an experiment that no other object decides on.
func Alone(e *v1alpha1.Experiment) field.ErrorList {
	input := render.Input{Experiment: e, Scripts: map[v1alpha1.KeyReference]string{}, FileBytes: map[v1alpha1.KeyReference]int{}, Waveforms: render.WaveformsOf(&e.Spec, nil)}
	return All(&Subject{Input: input})
}

func (s *Subject) run(chain []check) (found []Finding) {
	for _, c := range chain {
		found = append(found, findings(c.reason, c.find(s))...)
	}
	return found
}

func findings(reason string, errs field.ErrorList) (found []Finding) {
	for _, err := range errs {
		found = append(found, Finding{reason, err})
	}
	return found
}
