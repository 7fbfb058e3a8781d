package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// engineOf is a network's engine. It is empty for radiod's own, which is the default, and for the link model.
func engineOf(network v1alpha1.Network, waveform v1alpha1.WaveformSpec) v1alpha1.Engine {
	if network.Engine == v1alpha1.EngineNative || waveform.PHY() == nil && waveform.EMANE == nil {
		return ""
	}
	return network.Engine
}

// InPlace is a network's inline waveform. ok is false if the network names one.
func InPlace(network v1alpha1.Network) (w v1alpha1.WaveformSpec, ok bool) {
	return v1alpha1.WaveformSpec{Link: network.Link, RFPipe: network.RFPipe, TDMA: network.TDMA}, network.Waveform == ""
}

// WaveformsOf are the waveforms of an experiment's networks, by network: those in place, and those that are named and known.
func WaveformsOf(spec *v1alpha1.ExperimentSpec, known map[string]v1alpha1.WaveformSpec) map[string]v1alpha1.WaveformSpec {
	found := map[string]v1alpha1.WaveformSpec{}
	for _, network := range spec.Networks {
		if waveform, ok := InPlace(network); ok {
			found[network.Name] = waveform
		} else if waveform, ok := known[network.Waveform]; ok {
			found[network.Name] = waveform
		}
	}
	return found
}

// WithWaveform is a network with the named waveform inline, which is equivalent.
func WithWaveform(network v1alpha1.Network, w v1alpha1.WaveformSpec) v1alpha1.Network {
	network.Links = links(network, w)
	network.Waveform, network.Base = "", nil
	network.Link, network.RFPipe, network.TDMA = w.Link, w.RFPipe, w.TDMA
	return network
}

// radioChecker checks networks with a physical layer.
type radioChecker struct {
	spec     *v1alpha1.ExperimentSpec
	topology *topology.Topology
	// scenario is nil if there is none or it is not known yet.
	scenario *Scenario
	reported map[string]bool
}

// once drops a second finding about a field, because two networks of a node have the same finding.
func (c *radioChecker) once(err *field.Error) field.ErrorList {
	if c.reported[err.Field] {
		return nil
	}
	c.reported[err.Field] = true
	return field.ErrorList{err}
}

// CheckRadioModels finds what does not fit the radio models of an experiment's networks. The waveforms are by network, as far
// as they are known. scenario is that of the experiment, nil if there is none or it is not known.
func CheckRadioModels(spec *v1alpha1.ExperimentSpec, t *topology.Topology, waveforms map[string]v1alpha1.WaveformSpec, scenario *Scenario) (errs field.ErrorList) {
	c := &radioChecker{spec: spec, topology: t, scenario: scenario, reported: map[string]bool{}}
	errs = append(checkTopologies(t, spec), checkOneRoute(t, spec)...)
	errs = append(errs, checkFixed(spec)...)
	for i, network := range spec.Networks {
		path := field.NewPath("spec", "networks").Index(i)
		errs = append(errs, checkRoutes(t, network, path)...)
		for j, radio := range network.Radios {
			if h := radio.AntennaHeight; h != nil && h.Float() <= 0 {
				errs = append(errs, field.Invalid(path.Child("radios").Index(j).Child("antennaHeight"), *h, "must be more than 0 m, such as 3m"))
			}
			for k, name := range radio.Nodes {
				if err := checkOnNetwork(t, network.Name, name); err != nil {
					errs = append(errs, field.Invalid(path.Child("radios").Index(j).Child("nodes").Index(k), name, err.Error()))
				}
			}
		}
		errs = append(errs, checkOverwritten(t, network, path.Child("radios"))...)
		if waveform, known := waveforms[network.Name]; known {
			errs = append(errs, c.checkNetwork(network, &waveform, path)...)
		}
	}
	errs = append(errs, checkSlotReach(spec, t, waveforms, scenario)...)
	return append(errs, checkSpectra(spec, t, waveforms, scenario)...)
}

// radioSettings are the settings of an entry of radios, by field.
var radioSettings = []struct {
	field string
	given func(v1alpha1.Radio) bool
}{
	{"transmitPower", func(r v1alpha1.Radio) bool { return r.TransmitPower != nil }},
	{"antennaGain", func(r v1alpha1.Radio) bool { return r.AntennaGain != nil }},
	{"noiseFigure", func(r v1alpha1.Radio) bool { return r.NoiseFigure != nil }},
	{"antennaHeight", func(r v1alpha1.Radio) bool { return r.AntennaHeight != nil }},
}

// checkOverwritten finds names in radios for all of whose nodes later entries set the same again.
func checkOverwritten(t *topology.Topology, network v1alpha1.Network, path *field.Path) (errs field.ErrorList) {
	type setting struct{ field, node string }
	counts := map[setting]int{} // the index of the entry that counts, which is the last one
	for i, radio := range slices.Backward(network.Radios) {
		for j, name := range radio.Nodes {
			nodes := attached(t, network.Name, name)
			for _, of := range radioSettings {
				if !of.given(radio) {
					continue
				}
				later := 0
				for _, node := range nodes {
					s := setting{of.field, node.Name}
					if _, known := counts[s]; !known {
						counts[s] = i
					}
					if counts[s] > i {
						later++
					}
				}
				if len(nodes) > 0 && later == len(nodes) {
					errs = append(errs, field.Invalid(path.Index(i).Child("nodes").Index(j), name, fmt.Sprintf(
						"its %s has no effect, as radios[%d] comes later and sets it again: leave out one of them, or put the one for fewer nodes last", of.field, counts[setting{of.field, nodes[0].Name}])))
				}
			}
		}
	}
	return errs
}

func (c *radioChecker) checkNetwork(network v1alpha1.Network, w *v1alpha1.WaveformSpec, path *field.Path) (errs field.ErrorList) {
	errs = checkForLink(network, w, path)
	p := w.PHY()
	if p == nil {
		return slices.Concat(errs, checkForPHY(network, w, path), c.checkEMANE(network, w, path), c.checkChanges(network, w))
	}
	errs = append(errs, c.checkEMANE(network, w, path)...)
	at := modelPath{network: network, path: path.Child(w.Model()), networkPath: path}
	errs = append(errs, at.checkModel(w, nemsOn(c.topology, network.Name))...)
	errs = append(errs, c.checkPositions(network, p.PathlossFrom() == v1alpha1.PathlossScenario)...)
	return append(errs, c.checkChanges(network, w)...)
}

// CheckWaveform finds the errors of a Waveform that do not depend on nodes.
func CheckWaveform(w *v1alpha1.WaveformSpec) (errs field.ErrorList) {
	settings := emane.CheckSettings(w, field.NewPath("spec"))
	if w.PHY() == nil {
		return slices.Concat(checkLink(w.Link, field.NewPath("spec", "link")), checkLink(w.Downlink, field.NewPath("spec", "downlink")), settings)
	}
	nems := []int{1}
	if w.TDMA != nil && w.TDMA.Schedule != "" {
		if s, err := tdma.ParseSchedule([]byte(w.TDMA.Schedule), nil); err == nil {
			nems = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.NEMs(), s.Destinations()))))
		}
	}
	at := modelPath{path: field.NewPath("spec", w.Model())}
	return append(at.checkModel(w, nems), settings...)
}

// CheckLiveChange finds the errors of a LiveChange that do not depend on networks.
func CheckLiveChange(spec *v1alpha1.LiveChangeSpec) (errs field.ErrorList) {
	for i, change := range spec.Changes {
		path := field.NewPath("spec", "changes").Index(i)
		if change.Schedule != "" {
			if _, err := tdma.ParseSchedule([]byte(change.Schedule), nil); err != nil && !tdma.IsUpdate(err) {
				errs = append(errs, field.Invalid(path.Child("schedule"), "", err.Error()))
			}
		}
		errs = append(errs, checkJammer(change.Jammer, path)...)
		errs = append(errs, checkPatch(change.Link, path.Child("link"))...)
	}
	return errs
}

func checkJammer(jammer *v1alpha1.Jammer, path *field.Path) field.ErrorList {
	if jammer == nil || jammer.Position == nil {
		return nil
	}
	if err := checkPosition(*jammer.Position); err != nil {
		return field.ErrorList{field.Invalid(path.Child("jammer", "position"), jammer.Name, err.Error())}
	}
	return nil
}

// modelPath is the field path of a network's model, which may be in a Waveform.
type modelPath struct {
	network           v1alpha1.Network
	path, networkPath *field.Path
}

func (m modelPath) invalid(part string, err error) *field.Error {
	if m.network.Waveform != "" {
		return field.Invalid(m.networkPath.Child("waveform"), m.network.Waveform, part+": "+err.Error())
	}
	return field.Invalid(m.path.Child(part), "", err.Error())
}

// checkModel checks the model of a network whose nodes have the given NEM ids.
func (m modelPath) checkModel(w *v1alpha1.WaveformSpec, nems []int) (errs field.ErrorList) {
	for _, problem := range []struct {
		part string
		err  error
	}{{"phy", checkPHY(w.PHY())}, {"pcr", checkPCR(w)}, {scheduleField(w), m.checkSchedule(w, nems)}, {"dutyCycle", checkDutyCycle(w.RFPipe)}} {
		if problem.err != nil {
			errs = append(errs, m.invalid(problem.part, problem.err))
		}
	}
	return errs
}

func checkDutyCycle(w *v1alpha1.RFPipeModel) error {
	if w != nil && w.DutyCycle != nil && !(w.DutyCycle.Fraction() > 0) {
		return fmt.Errorf("%s lets nobody send: must be above zero, such as 1%%", *w.DutyCycle)
	}
	return nil
}

// checkForLink finds settings of the link model at a network whose waveform has another model.
func checkForLink(network v1alpha1.Network, w *v1alpha1.WaveformSpec, path *field.Path) (errs field.ErrorList) {
	if network.Waveform == "" || w.Model() == v1alpha1.ModelLink {
		return nil // the API server refuses them with a model in place
	}
	if network.CommEffects && (w.EMANE == nil || w.EMANE.Model != v1alpha1.EMANECommEffect) {
		errs = append(errs, field.Forbidden(path.Child("commEffects"), fmt.Sprintf("comm effects are for the link model, and waveform %s is %s; EMANE's model commeffect has them too", network.Waveform, w.Model())))
	}
	if len(network.Links) > 0 {
		errs = append(errs, field.Forbidden(path.Child("links"), fmt.Sprintf("links are for the link model, and waveform %s is %s", network.Waveform, w.Model())))
	}
	return errs
}

// checkForPHY finds settings of a physical layer at a network whose waveform has none.
func checkForPHY(network v1alpha1.Network, w *v1alpha1.WaveformSpec, path *field.Path) (errs field.ErrorList) {
	if network.Waveform == "" {
		return nil // the API server refuses them with a model in place
	}
	if len(network.Radios) > 0 {
		errs = append(errs, field.Forbidden(path.Child("radios"), fmt.Sprintf("radios are for rfpipe and tdma, and waveform %s is %s", network.Waveform, w.Model())))
	}
	if network.Engine == v1alpha1.EngineEMANE && w.EMANE == nil {
		errs = append(errs, field.Forbidden(path.Child("engine"), fmt.Sprintf("engine emane is for rfpipe, tdma and emane, and waveform %s is %s", network.Waveform, w.Model())))
	}
	return errs
}

// checkEMANE finds what EMANE does not support in a network with these members, and files that are too large.
func (c *radioChecker) checkEMANE(network v1alpha1.Network, w *v1alpha1.WaveformSpec, path *field.Path) (errs field.ErrorList) {
	switch {
	case network.Engine != v1alpha1.EngineEMANE && w.EMANE != nil:
		return field.ErrorList{field.Invalid(path.Child("engine"), network.Engine, fmt.Sprintf("waveform %s has settings of EMANE's own: want engine emane, or another waveform", network.Waveform))}
	case network.Engine != v1alpha1.EngineEMANE || w.Model() == v1alpha1.ModelLink:
		return nil
	}
	rendered := &v1alpha1.RadioNetwork{Spec: v1alpha1.RadioNetworkSpec{Waveform: *w, Radios: network.Radios, FadingSelections: c.scenario.fades(network, *w)}}
	antennas := 0
	for _, node := range c.topology.Nodes {
		if a, on := node.Address(network.Name); on {
			if c.scenario.hasAntennaProfile(node) {
				antennas = int(c.scenario.Statistics.AntennaFileBytes)
			}
			rendered.Spec.Members = append(rendered.Spec.Members, v1alpha1.Member{Node: node.Name, Group: node.Group, NEM: node.NEM, Address: a.String() + "/32"})
		}
	}
	for _, err := range emane.Check(&rendered.Spec) {
		errs = append(errs, field.Invalid(path.Child("engine"), network.Engine, err.Error()))
	}
	if len(errs) == 0 {
		errs = checkEMANEFiles(rendered, path.Child("engine"), antennas, emaneFilesLimit)
	}
	return append(errs, c.checkFading(network, &rendered.Spec, path)...)
}

// checkFading finds networks of EMANE's that fade without positions. Networks that compute pathloss have them.
func (c *radioChecker) checkFading(network v1alpha1.Network, rendered *v1alpha1.RadioNetworkSpec, path *field.Path) field.ErrorList {
	if c.scenario == nil || c.scenario.Statistics.Positions || !emane.Fades(rendered) {
		return nil
	}
	if rendered.Waveform.PHY().PathlossFrom() != v1alpha1.PathlossScenario {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("engine"), network.Engine, fmt.Sprintf("EMANE fades signals between positions only, and scenario %s has none: "+
		"want location sentences in it, a Waveform with the parameter fading.model none, or engine native", c.scenario.Name))}
}

// CheckEngine finds networks whose engine is not installed.
func CheckEngine(spec *v1alpha1.ExperimentSpec, options Options) (errs field.ErrorList) {
	for i, network := range spec.Networks {
		if network.Engine == v1alpha1.EngineEMANE && options.EMANEImage == "" {
			errs = append(errs, field.Invalid(field.NewPath("spec", "networks").Index(i).Child("engine"), network.Engine,
				"EMANE is not installed on this cluster: use engine native, which has the same models, or ask the administrator to install it (docs/how-to/install.md)"))
		}
	}
	return errs
}

func checkPHY(p *v1alpha1.PHY) error {
	if p.Frequency != "" && p.Frequency.Hertz() <= 0 {
		return fmt.Errorf("frequency is %s: must be more than 0 Hz", p.Frequency)
	}
	if p.Bandwidth != "" && p.Bandwidth.Hertz() <= 0 {
		return fmt.Errorf("bandwidth is %s: must be more than 0 Hz", p.Bandwidth)
	}
	if p.AntennaHeight != "" && p.AntennaHeight.Float() <= 0 {
		return fmt.Errorf("antennaHeight is %s: must be more than 0 m, such as 3m", p.AntennaHeight)
	}
	return nil
}

func checkPCR(w *v1alpha1.WaveformSpec) error {
	text := ""
	if w.RFPipe != nil {
		text = w.RFPipe.PCR
	} else if w.TDMA != nil {
		text = w.TDMA.PCR
	} else if w.EMANE != nil {
		text = w.EMANE.PCR
	}
	if text == "" {
		return nil
	}
	if w.Model() == v1alpha1.ModelEMANE && w.EMANE.Model == v1alpha1.EMANEBentPipe {
		return phy.CheckBentPipePCR([]byte(text))
	}
	_, err := phy.ParsePCR([]byte(text))
	return err
}

// scheduleField is the field of a tdma network's schedule.
func scheduleField(w *v1alpha1.WaveformSpec) string {
	if w.TDMA != nil && w.TDMA.Schedule != "" {
		return "schedule"
	}
	return "structure"
}

// nemsOn are the NEM ids on a network, ascending.
func nemsOn(t *topology.Topology, network string) (nems []int) {
	for _, node := range attached(t, network, everyNode) {
		nems = append(nems, int(node.NEM))
	}
	slices.Sort(nems)
	return nems
}

// initialSchedule is a tdma network's schedule, given or generated. It is nil for a network without nodes.
func initialSchedule(w *v1alpha1.TDMAModel, nems []int) (*tdma.Schedule, error) {
	if len(nems) == 0 {
		return nil, nil
	}
	if w.Schedule != "" {
		return parseSchedule(w.Schedule, nil, nems)
	}
	schedule, err := linkbudget.Schedule(w, nems, w.Rate, nil)
	if err != nil {
		return nil, err
	}
	s := schedule.Structure()
	if mute := schedule.WithoutSendSlots(nems); len(mute) > 0 {
		return nil, fmt.Errorf("%d frames of %d slots are too few for %d nodes: NEM id %d would never send", s.Frames, s.Slots, len(nems), mute[0])
	}
	return schedule, nil
}

// parseSchedule parses a schedule. It may name only members of the network, because EMANE would silently ignore others.
func parseSchedule(text string, base *tdma.Schedule, nems []int) (*tdma.Schedule, error) {
	s, err := tdma.ParseSchedule([]byte(text), base)
	if err != nil {
		return nil, err
	}
	for _, named := range []struct {
		as   string
		nems []int
	}{{"names", s.NEMs()}, {"has a slot for destination", s.Destinations()}} {
		for _, nem := range named.nems {
			if _, known := slices.BinarySearch(nems, nem); !known {
				return nil, fmt.Errorf("the schedule %s NEM id %d, which no node of the network has: they have %s", named.as, nem, v1alpha1.PlatformRanges(nems))
			}
		}
	}
	return s, nil
}

// checkHops refuses a schedule in which a node sends at several frequencies where radiod would compute its pathloss for one.
func checkHops(engine v1alpha1.Engine, w *v1alpha1.WaveformSpec, s *tdma.Schedule) error {
	source := w.PHY().PathlossFrom()
	if engine == v1alpha1.EngineEMANE || source == v1alpha1.PathlossScenario {
		return nil
	}
	if err := s.CheckHops(); err != nil {
		return fmt.Errorf("%w, and pathloss %s is computed for one frequency of each node: want one, pathloss Scenario, or engine emane", err, source)
	}
	return nil
}

// checkSchedule checks the schedule of a tdma network and its rates.
func (m modelPath) checkSchedule(w *v1alpha1.WaveformSpec, nems []int) error {
	if w.TDMA == nil {
		return nil
	}
	schedule, err := initialSchedule(w.TDMA, nems)
	if err != nil || schedule == nil {
		return err
	}
	if m.network.Name != "" { // a Waveform alone has no engine
		if err := checkHops(m.network.Engine, w, schedule); err != nil {
			return err
		}
	}
	var rates []tdma.Rate
	for _, rate := range w.TDMA.AdaptiveRates {
		rates = append(rates, tdma.Rate{BitsPerSecond: uint64(rate.Rate.BitsPerSecond()), SINRDB: rate.SINR.DB()})
	}
	return tdma.CheckRates(rates, schedule.Structure())
}

// checkChanges checks the timeline's changes of a network in order of time, because a schedule may build on the one before.
func (c *radioChecker) checkChanges(network v1alpha1.Network, w *v1alpha1.WaveformSpec) (errs field.ErrorList) {
	model := NewChangeable(w, nemsOn(c.topology, network.Name))
	model.engine, model.pairLinks = network.Engine, network.CommEffects
	for _, node := range attached(c.topology, network.Name, everyNode) {
		if c.scenario.hasAntennaProfile(node) {
			model.patterned = append(model.patterned, v1alpha1.Member{Node: node.Name, Group: node.Group})
		}
	}
	type placed struct {
		v1alpha1.TimedRadioChange
		path *field.Path
	}
	var all []placed
	for i, entry := range c.spec.Timeline {
		for j, change := range entry.Set {
			if change.Network == network.Name {
				all = append(all, placed{v1alpha1.TimedRadioChange{AtNanoseconds: int64(entry.At.Std()), RadioChange: change},
					field.NewPath("spec", "timeline").Index(i).Child("set").Index(j)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	for _, p := range all {
		errs = append(errs, model.Change(p.RadioChange, p.path)...)
	}
	return errs
}

// Changeable is the state of a network's model to which changes are applied in order.
type Changeable struct {
	waveform *v1alpha1.WaveformSpec
	engine   v1alpha1.Engine
	nems     []int
	schedule *tdma.Schedule
	// pairLinks means that the scenario has a link for each pair of nodes.
	pairLinks bool
	// patterned are the members with antenna profiles.
	patterned []v1alpha1.Member
}

// NewChangeable is the model before any change.
func NewChangeable(w *v1alpha1.WaveformSpec, nems []int) *Changeable {
	c := &Changeable{waveform: w, nems: nems}
	if w.TDMA != nil {
		c.schedule, _ = initialSchedule(w.TDMA, nems) // another check reports its errors
	}
	return c
}

// CheckChanges returns what of a radio network's changes does not fit, in order of time, as radiod applies them.
func CheckChanges(spec *v1alpha1.RadioNetworkSpec, path func(v1alpha1.TimedRadioChange) *field.Path) (errs field.ErrorList) {
	c := changeableOf(spec)
	for _, change := range spec.Changes {
		errs = append(errs, c.Change(change.RadioChange, path(change))...)
	}
	return errs
}

// changeableOf is the model of a radio network before its changes.
func changeableOf(spec *v1alpha1.RadioNetworkSpec) *Changeable {
	nems := make([]int, len(spec.Members))
	for i := range spec.Members {
		nems[i] = int(spec.Members[i].NEM)
	}
	slices.Sort(nems)
	c := NewChangeable(&spec.Waveform, nems)
	c.engine, c.pairLinks = spec.Engine, spec.CommEffects
	for _, member := range spec.Members {
		if member.AntennaProfiles {
			c.patterned = append(c.patterned, member)
		}
	}
	return c
}

// Change returns what of a change does not fit the model, and applies what fits.
func (c *Changeable) Change(change v1alpha1.RadioChange, path *field.Path) (errs field.ErrorList) {
	model := c.waveform.Model()
	forbid := func(part string, wrong bool, needs string) {
		if wrong {
			errs = append(errs, field.Forbidden(path.Child(part), fmt.Sprintf("is for %s, and network %s is %s", needs, change.Network, model)))
		}
	}
	forbid("link", change.Link != nil && model != v1alpha1.ModelLink, "the link model")
	if c.pairLinks && change.Link != nil && (!v1alpha1.IsEveryNode(change.From) || !v1alpha1.IsEveryNode(change.To)) {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("network %s has commEffects, by which each pair of nodes has a link of its own: leave out from and to", change.Network)))
	}
	forbid("radio", change.Radio != nil && c.waveform.PHY() == nil, "rfpipe and tdma")
	forbid("jammer", change.Jammer != nil && c.waveform.PHY() == nil, "rfpipe and tdma")
	forbid("schedule", change.Schedule != "" && model != v1alpha1.ModelTDMA, "tdma")
	if change.Radio != nil {
		forbid("radio.frequency", change.Radio.Frequency != nil && model == v1alpha1.ModelTDMA, "rfpipe, as a TDMA schedule has its own")
		otherMAC := model == v1alpha1.ModelTDMA || model == v1alpha1.ModelEMANE
		forbid("radio.delay", change.Radio.Delay != nil && otherMAC, "rfpipe")
		forbid("radio.jitter", change.Radio.Jitter != nil && otherMAC, "rfpipe")
		forbid("radio.rate", change.Radio.Rate != nil && model == v1alpha1.ModelEMANE, "rfpipe and tdma")
	}
	errs = append(errs, checkJammer(change.Jammer, path)...)
	if c.engine == v1alpha1.EngineEMANE {
		errs = append(errs, emane.CheckChange(c.waveform, c.schedule, &change, path)...)
		errs = append(errs, c.checkGain(change, path)...)
	}
	if len(errs) == 0 {
		errs = c.checkEffect(change, path)
	}
	if len(errs) == 0 && model == v1alpha1.ModelTDMA {
		if err := c.reschedule(change); err != nil {
			errs = append(errs, err.in(path))
		}
	}
	return errs
}

// checkGain refuses a gain for nodes with antenna profiles, which EMANE uses in its place.
func (c *Changeable) checkGain(change v1alpha1.RadioChange, path *field.Path) field.ErrorList {
	if change.Radio == nil || change.Radio.AntennaGain == nil {
		return nil
	}
	for i := range c.patterned {
		if change.From == "" || c.patterned[i].IsCalled(change.From) {
			return field.ErrorList{field.Forbidden(path.Child("radio", "antennaGain"), fmt.Sprintf(
				"node %s has antenna profiles in the scenario, which EMANE uses in place of a gain: name nodes without them in from, or take engine native", c.patterned[i].Node))}
		}
	}
	return nil
}

// checkEffect finds what of a change the model accepts but ignores.
func (c *Changeable) checkEffect(change v1alpha1.RadioChange, path *field.Path) (errs field.ErrorList) {
	some := !v1alpha1.IsEveryNode(change.From)
	if r := change.Radio; r != nil && some && c.engine != v1alpha1.EngineEMANE {
		for part, given := range map[string]bool{"delay": r.Delay != nil, "jitter": r.Jitter != nil} {
			if given {
				errs = append(errs, field.Forbidden(path.Child("radio", part), "delay and jitter are the same for all radios of a network: change them in a separate entry without from"))
			}
		}
	}
	if r := change.Radio; r != nil && r.Rate != nil && c.waveform.TDMA != nil && len(c.waveform.TDMA.AdaptiveRates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("radio", "rate"), fmt.Sprintf("the radios of network %s choose their rates by SINR, as its waveform has adaptiveRates: leave out rate", change.Network)))
	}
	if j := change.Jammer; j != nil && !j.Ended() && c.waveform.InterferenceCounted() == v1alpha1.InterferenceNone {
		errs = append(errs, field.Forbidden(path.Child("jammer"), fmt.Sprintf("network %s counts no interference, so that a jammer has no effect: set interference of its waveform to OutOfBand or All", change.Network)))
	}
	return errs
}

// partError is an error about a part of a change.
type partError struct {
	part []string
	err  error
}

func (p *partError) in(path *field.Path) *field.Error {
	return field.Invalid(path.Child(p.part[0], p.part[1:]...), "", p.err.Error())
}

func (c *Changeable) reschedule(change v1alpha1.RadioChange) *partError {
	if c.schedule == nil {
		return nil
	}
	if change.Schedule != "" {
		next, err := parseSchedule(change.Schedule, c.schedule, c.nems)
		if err == nil {
			err = checkHops(c.engine, c.waveform, next)
		}
		if err != nil {
			return &partError{[]string{"schedule"}, err}
		}
		if c.engine == v1alpha1.EngineEMANE {
			if err := emane.CheckSchedule(next); err != nil {
				return &partError{[]string{"schedule"}, err}
			}
		}
		c.schedule = next
	}
	if change.Radio == nil || change.Radio.Rate == nil {
		return nil
	}
	rate := []string{"radio", "rate"}
	if !c.schedule.Generated() {
		return &partError{rate, errors.New("the current schedule is not a generated one, and has rates of its own: change the schedule")}
	}
	if !v1alpha1.IsEveryNode(change.From) {
		return &partError{rate, errors.New("a generated schedule has one rate for all: leave out from")}
	}
	w := *c.waveform.TDMA
	w.Rate, w.Schedule = *change.Radio.Rate, ""
	next, err := initialSchedule(&w, c.nems)
	if err != nil {
		return &partError{rate, err}
	}
	c.schedule = next
	return nil
}
