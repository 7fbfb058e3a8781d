package worker

import (
	"errors"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/rfpipe"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// pipes is the waveform rfpipe.
type pipes struct {
	config rfpipe.Config
	radios *radios
}

func newRFPipe(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange, air *environment) (waveform, error) {
	w := spec.Waveform.RFPipe
	curve, err := parsePCR(w.PCR)
	if err != nil {
		return nil, err
	}
	interference := interferenceOf(w.Interference)
	return &pipes{radios: newRadios(spec, w.Rate), config: rfpipe.Config{Seed: spec.Seed, Environment: air, Delay: w.Delay.Std(), Jitter: w.Jitter.Std(),
		QueueDepth: int(w.QueueDepth), Interference: interference, HalfDuplex: w.HalfDuplex, DutyCycle: dutyCycleOf(w), PCR: curve}}, errors.Join(checkDelays(changes), checkJammers(changes, interference))
}

// checkDelays names changes of the delay or jitter of some nodes, which are left out, because a network has
// one of each.
func checkDelays(changes []v1alpha1.TimedRadioChange) error {
	var err error
	for i := range changes {
		if p := changes[i].Radio; p != nil && !isEverybody(changes[i].From) && (p.Delay != nil || p.Jitter != nil) {
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

// parsePCR reads a curve; none for an empty text.
func parsePCR(text string) (*phy.Curve, error) {
	if text == "" {
		return nil, nil
	}
	curve, err := phy.ParsePCR([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("waveform: pcr: %w", err)
	}
	return curve, nil
}

// dutyCycleOf is the share of time in which a node may send, or 0 for all of it.
func dutyCycleOf(w *v1alpha1.RFPipeModel) float64 {
	if w.DutyCycle == nil {
		return 0
	}
	return w.DutyCycle.Fraction()
}

func interferenceOf(i v1alpha1.Interference) phy.Interference {
	switch i {
	case v1alpha1.InterferenceAll:
		return phy.All
	case v1alpha1.InterferenceOutOfBand:
		return phy.OutOfBand
	default:
		return phy.None
	}
}

func (w *pipes) apply(change *v1alpha1.RadioChange) {
	p := change.Radio
	if p == nil {
		return
	}
	w.radios.patch(change.From, p)
	if !isEverybody(change.From) {
		return
	}
	if p.Delay != nil {
		w.config.Delay = p.Delay.Std()
	}
	if p.Jitter != nil {
		w.config.Jitter = p.Jitter.Std()
	}
}

func (w *pipes) snapshot() settings {
	config, now := w.config, w.radios.snapshot()
	config.Radio, config.RateBitsPerSecond = now.phyRadio, now.rate
	return pipeSettings{config}
}

type pipeSettings struct{ rfpipe.Config }

func (s pipeSettings) model() radio.Model { return rfpipe.New(s.Config) }
func (s pipeSettings) configure(_ int64, model radio.Model) {
	model.(*rfpipe.Model).Configure(s.Config)
}

func (s pipeSettings) medium(model radio.Model) heardLinks { return model.(*rfpipe.Model).Medium() }

// statistics are empty: the engine has all counters of nodes.
func (s pipeSettings) statistics(radio.Model, *radio.Port, bool) (none nodeStatistics) { return none }
