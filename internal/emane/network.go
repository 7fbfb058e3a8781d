// Package emane implements the engine emane's interfaces to EMANE 1.5, without any of its code. They are the
// files of its processes, the events on its event channel, and its control port. All follow EMANE's published
// formats, which README.md lists.
package emane

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// queueDepth of EMANE's RF Pipe, which cannot be changed.
const queueDepth = 255

// Check returns what EMANE cannot do of a network, by the fields of its spec.
func Check(spec *v1alpha1.RadioNetworkSpec) field.ErrorList {
	path := field.NewPath("waveform")
	var errs field.ErrorList
	switch w := &spec.Waveform; {
	case w.RFPipe != nil:
		errs = checkRFPipe(w.RFPipe, path.Child("rfpipe"))
	case w.TDMA != nil:
		errs = append(errs, checkSchedule(spec, path.Child("tdma"))...)
	case w.EMANE == nil:
		return field.ErrorList{field.Required(path, "engine emane is for rfpipe, tdma and emane")}
	case w.PHY() == nil && spec.Silent:
		errs = append(errs, field.Invalid(field.NewPath("silent"), spec.Silent, noSilence(w)))
	}
	errs = append(errs, CheckSettings(&spec.Waveform, path)...)
	errs = append(errs, checkNodes(spec, path)...)
	errs = append(errs, checkRadios(spec)...)
	if len(spec.Links) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("links"), "EMANE has no link model: leave links out, or take engine native"))
	}
	return append(errs, checkMembers(spec)...)
}

func noSilence(w *v1alpha1.WaveformSpec) string {
	return "EMANE's model " + w.EMANE.Model + " has no physical layer, and cannot be silent"
}

// checkSchedule finds a schedule that is too long. Other checks find one that is wrong.
func checkSchedule(spec *v1alpha1.RadioNetworkSpec, path *field.Path) field.ErrorList {
	schedule, err := Schedule(spec)
	if err != nil {
		return nil
	}
	part := "structure"
	if spec.Waveform.TDMA.Schedule != "" {
		part = "schedule"
	}
	if err := CheckSchedule(schedule); err != nil {
		return field.ErrorList{field.Forbidden(path.Child(part), err.Error())}
	}
	return nil
}

func checkRFPipe(w *v1alpha1.RFPipeModel, path *field.Path) (errs field.ErrorList) {
	if w.HalfDuplex {
		errs = append(errs, field.Invalid(path.Child("halfDuplex"), w.HalfDuplex, "EMANE's RF Pipe is full duplex: want false, or engine native"))
	}
	if w.DutyCycle != nil {
		errs = append(errs, field.Forbidden(path.Child("dutyCycle"), "EMANE's RF Pipe has no duty cycle: leave it out, or take engine native"))
	}
	if w.Interference == v1alpha1.InterferenceAll {
		errs = append(errs, field.Invalid(path.Child("interference"), w.Interference, "EMANE's RF Pipe does not count interference of its own waveform: want None or OutOfBand, or engine native"))
	}
	if w.QueueDepth != 0 && w.QueueDepth != queueDepth {
		errs = append(errs, field.Invalid(path.Child("queueDepth"), w.QueueDepth, fmt.Sprintf("EMANE's RF Pipe has a queue of %d frames: want that, or engine native", queueDepth)))
	}
	if rate := w.Rate.BitsPerSecond(); rate < 1 || rate != math.Trunc(rate) {
		errs = append(errs, field.Invalid(path.Child("rate"), w.Rate, "EMANE has rates in whole bits per second, from 1 on"))
	}
	return errs
}

// checkRadios finds powers and gains of nodes whose model has them in its parameters.
func checkRadios(spec *v1alpha1.RadioNetworkSpec) (errs field.ErrorList) {
	if !modelOf(&spec.Waveform).transponders {
		return nil
	}
	for i, r := range spec.Radios {
		if r.TransmitPower != nil || r.AntennaGain != nil {
			errs = append(errs, field.Forbidden(field.NewPath("radios").Index(i), "the antennas of EMANE's model "+spec.Waveform.EMANE.Model+
				" have their power and gain in the waveform's emane.nodes: leave transmitPower and antennaGain out"))
		}
	}
	return errs
}

func checkMembers(spec *v1alpha1.RadioNetworkSpec) (errs field.ErrorList) {
	taken := map[int32]string{}
	for i := range spec.Members {
		member, path := &spec.Members[i], field.NewPath("members").Index(i).Child("nem")
		// EMANE also starts with the ids 0 and 65535, but then does not work correctly.
		if member.NEM < 1 || member.NEM > tdma.MaxNEM {
			errs = append(errs, field.Invalid(path, member.NEM, fmt.Sprintf("want a NEM id from 1 to %d", tdma.MaxNEM)))
		}
		if taken[member.NEM] != "" {
			errs = append(errs, field.Duplicate(path, member.NEM))
		}
		taken[member.NEM] = member.Node
	}
	return errs
}

// physical layer of one member's radio.
type physical struct {
	v1alpha1.PHY
	powerDBm, gainDBi, noiseFigureDB float64
}

func phyOf(spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member) physical {
	p := physical{PHY: *cmp.Or(spec.Waveform.PHY(), &v1alpha1.PHY{})}
	p.Frequency = cmp.Or(p.Frequency, v1alpha1.DefaultFrequency)
	p.Bandwidth = cmp.Or(p.Bandwidth, v1alpha1.DefaultBandwidth)
	p.powerDBm, p.gainDBi, p.noiseFigureDB = cmp.Or(p.TransmitPower, "0dBm").DBm(), p.AntennaGain.DBi(), cmp.Or(p.NoiseFigure, "4dB").DB()
	for _, r := range spec.Radios {
		for _, name := range r.Nodes {
			if member.IsCalled(name) {
				p.patch(&r)
			}
		}
	}
	return p
}

func (p *physical) patch(r *v1alpha1.Radio) {
	if r.TransmitPower != nil {
		p.powerDBm = r.TransmitPower.DBm()
	}
	if r.AntennaGain != nil {
		p.gainDBi = r.AntennaGain.DBi()
	}
	if r.NoiseFigure != nil {
		p.noiseFigureDB = r.NoiseFigure.DB()
	}
}

// Schedule returns a TDMA network's schedule: its own, or one generated for its members, with each member's
// transmit power.
func Schedule(spec *v1alpha1.RadioNetworkSpec) (*tdma.Schedule, error) {
	w := spec.Waveform.TDMA
	if w == nil {
		return nil, errors.New("waveform.tdma: missing")
	}
	if w.Schedule != "" {
		schedule, err := tdma.ParseSchedule([]byte(w.Schedule), nil)
		if err != nil {
			return nil, fmt.Errorf("waveform.tdma.schedule: %w", err)
		}
		return schedule, nil
	}
	return generate(spec, w.Rate, func(i int) float64 { return phyOf(spec, &spec.Members[i]).powerDBm })
}

// generate makes a schedule for the members with a rate, and each one's transmit power in dBm by its index.
func generate(spec *v1alpha1.RadioNetworkSpec, rate v1alpha1.DataRate, powerDBm func(member int) float64) (*tdma.Schedule, error) {
	nems, power := make([]int, len(spec.Members)), map[int]float64{}
	for i := range spec.Members {
		nems[i] = int(spec.Members[i].NEM)
		power[nems[i]] = powerDBm(i)
	}
	schedule, err := linkbudget.Schedule(spec.Waveform.TDMA, nems, rate, func(nem int) float64 { return power[nem] })
	if err != nil {
		return nil, fmt.Errorf("waveform.tdma.structure: %w", err)
	}
	return schedule, nil
}

// SlotReach returns the distance in metres up to which a TDMA burst that fills its slot ends within it, with each schedule of the
// spec and its changes: EMANE adds the propagation delay, and a receiver drops a burst that ends in the next slot. limited is
// false for networks whose members' locations are not published, and for those with another model or a schedule that is wrong.
func SlotReach(spec *v1alpha1.RadioNetworkSpec, profiles bool) (metres float64, limited bool) {
	if spec.Waveform.TDMA == nil || readsPathlosses(spec) && !profiles && !Fades(spec) {
		return 0, false
	}
	first, later, _ := linkbudget.Schedules(spec, spec.Changes) // other checks find one that is wrong
	if first == nil {
		return 0, false
	}
	overhead := first.Structure().SlotOverhead
	for _, next := range later {
		overhead = min(overhead, next.Structure().SlotOverhead)
	}
	return max(float64(overhead.Microseconds())-roundingMicroseconds, leastMicroseconds) * metresPerMicrosecond, true
}

// SlotOverheadFor is the least overhead in whole microseconds with which SlotReach is a distance.
func SlotOverheadFor(metres float64) time.Duration {
	return time.Duration(math.Ceil(metres/metresPerMicrosecond+roundingMicroseconds)) * time.Microsecond
}

const (
	metresPerMicrosecond = propagation.SpeedOfLight / 1e6
	// roundingMicroseconds is by how much EMANE's whole microseconds may be off; delays below leastMicroseconds are none.
	roundingMicroseconds = 1
	leastMicroseconds    = 0.49
)
