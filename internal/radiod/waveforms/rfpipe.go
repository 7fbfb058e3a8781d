package waveforms

import (
	"errors"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// pipes is the waveform rfpipe.
type pipes struct {
	fixed         dataplane.RFPipeModel
	radios        *radios
	delay, jitter time.Duration
}

func newRFPipe(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange) (waveform, error) {
	w := spec.Waveform.RFPipe
	if _, err := phy.CurveOf(w.PCR); err != nil {
		return nil, fmt.Errorf("waveform: pcr: %w", err)
	}
	interference := interferences[w.Interference]
	return &pipes{radios: newRadios(spec, w.Rate), delay: w.Delay.Std(), jitter: w.Jitter.Std(), fixed: dataplane.RFPipeModel{Seed: spec.Seed,
		QueueDepth: int(w.QueueDepth), Interference: interference, HalfDuplex: w.HalfDuplex, DutyCycle: share(w.DutyCycle), PCR: w.PCR}}, errors.Join(checkDelays(changes), checkJammers(changes, interference))
}

// checkDelays names changes of the delay or jitter of some nodes, which are left out, because a network has
// one of each.
func checkDelays(changes []v1alpha1.TimedRadioChange) error {
	var err error
	for i := range changes {
		if p := changes[i].Radio; p != nil && !v1alpha1.IsEveryNode(changes[i].From) && (p.Delay != nil || p.Jitter != nil) {
			err = errors.Join(err, fmt.Errorf("change at %v: radio.delay and radio.jitter of %q: a network has one of each: leave out from",
				time.Duration(changes[i].AtNanoseconds), changes[i].From))
		}
	}
	return err
}

// checkJammers names jammers without any effect.
func checkJammers(changes []v1alpha1.TimedRadioChange, interference phy.Interference) error {
	for i := range changes {
		if j := changes[i].Jammer; j != nil && !j.Ended() && interference == phy.None {
			return fmt.Errorf("change at %v: jammer %s: the waveform's interference is None, so that it disturbs nobody: want OutOfBand or All",
				time.Duration(changes[i].AtNanoseconds), j.Name)
		}
	}
	return nil
}

// interferences by the API's names.
var interferences = map[v1alpha1.Interference]phy.Interference{v1alpha1.InterferenceNone: phy.None, v1alpha1.InterferenceOutOfBand: phy.OutOfBand,
	v1alpha1.InterferenceAll: phy.All}

func (w *pipes) model(n *dataplane.Network) { n.RFPipe = &w.fixed }

func (w *pipes) apply(change *v1alpha1.RadioChange) {
	p := change.Radio
	if p == nil {
		return
	}
	w.radios.patch(change.From, p)
	if !v1alpha1.IsEveryNode(change.From) {
		return
	}
	if p.Delay != nil {
		w.delay = p.Delay.Std()
	}
	if p.Jitter != nil {
		w.jitter = p.Jitter.Std()
	}
}

func (w *pipes) state(s *dataplane.State) {
	s.Radios, s.Delay, s.Jitter = w.radios.state(), w.delay, w.jitter
}
