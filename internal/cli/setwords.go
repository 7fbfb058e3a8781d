package cli

import (
	"fmt"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// describeChange is a change as it is typed.
func describeChange(change v1alpha1.RadioChange) (parts []string) {
	if change.From != "" {
		parts = append(parts, "--from "+change.From)
	}
	if change.To != "" {
		parts = append(parts, "--to "+change.To)
	}
	if l := change.Link; l != nil {
		parts = append(parts, describePatch(*l)...)
	}
	if r := change.Radio; r != nil {
		parts = append(parts, describeRadio(*r)...)
	}
	if change.Schedule != "" {
		parts = append(parts, describeSchedule(change.Schedule))
	}
	if change.Jammer != nil {
		parts = append(parts, describeJammer(*change.Jammer))
	}
	if change.Silent != nil {
		parts = append(parts, fmt.Sprintf("silent=%v", *change.Silent))
	}
	return parts
}

func describePatch(l v1alpha1.LinkPatch) (parts []string) {
	parts = given(parts, "rate", l.Rate)
	parts = given(parts, "delay", l.Delay)
	parts = given(parts, "jitter", l.Jitter)
	parts = given(parts, "jitterDistribution", l.JitterDistribution)
	parts = given(parts, "jitterCorrelation", l.JitterCorrelation)
	parts = given(parts, "reorder", l.Reorder)
	parts = given(parts, "loss", l.Loss)
	parts = given(parts, "lossCorrelation", l.LossCorrelation)
	if g := l.GilbertElliott; g != nil {
		values := []string{string(g.GoodToBad), string(g.BadToGood), string(g.LossInBad), string(g.LossInGood)}
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		parts = append(parts, "gilbertElliott="+strings.Join(values, ","))
	}
	parts = given(parts, "duplicate", l.Duplicate)
	parts = given(parts, "corrupt", l.Corrupt)
	parts = given(parts, "limit", l.Limit)
	return given(parts, "limitBytes", l.LimitBytes)
}

func given[T any](parts []string, key string, value *T) []string {
	if value == nil {
		return parts
	}
	return append(parts, fmt.Sprintf("%s=%v", key, *value))
}

// asPatch shows a whole model with the words of a change; it leaves out what has no effect.
func asPatch(l v1alpha1.LinkModel) v1alpha1.LinkPatch {
	patch := v1alpha1.LinkPatch{Rate: l.Rate, GilbertElliott: l.GilbertElliott, Corrupt: l.Corrupt, LimitBytes: l.LimitBytes}
	if l.Delay.Std() != 0 {
		patch.Delay = &l.Delay
	}
	if l.Jitter.Std() != 0 {
		patch.Jitter, patch.JitterDistribution, patch.JitterCorrelation = &l.Jitter, &l.JitterDistribution, l.JitterCorrelation
	}
	if l.Reorder {
		patch.Reorder = &l.Reorder
	}
	if l.Loss.Fraction() != 0 {
		patch.Loss, patch.LossCorrelation = &l.Loss, l.LossCorrelation
	}
	if l.Duplicate.Fraction() != 0 {
		patch.Duplicate = &l.Duplicate
	}
	if l.Limit != 0 {
		patch.Limit = &l.Limit
	}
	return patch
}

func describeRadio(r v1alpha1.RadioPatch) (parts []string) {
	parts = given(parts, "rate", r.Rate)
	parts = given(parts, "delay", r.Delay)
	parts = given(parts, "jitter", r.Jitter)
	parts = given(parts, "frequency", r.Frequency)
	parts = given(parts, "transmitPower", r.TransmitPower)
	parts = given(parts, "antennaGain", r.AntennaGain)
	parts = given(parts, "noiseFigure", r.NoiseFigure)
	return given(parts, "transmit", r.Transmit)
}

// describeSchedule names the file, or says how long a text is whose file's name nobody knows any more.
func describeSchedule(schedule string) string {
	if strings.HasPrefix(schedule, "@") {
		return "schedule=" + schedule
	}
	return fmt.Sprintf("schedule=(%d bytes)", len(schedule))
}

func describeJammer(j v1alpha1.Jammer) string {
	parts := []string{"jammer=" + j.Name}
	if j.Ended() {
		parts = append(parts, "off")
	}
	parts = given(parts, "power", j.Power)
	if p := j.Position; p != nil {
		parts = append(parts, "latitude="+string(p.Latitude), "longitude="+string(p.Longitude))
		if p.Altitude.Float() != 0 {
			parts = append(parts, "altitude="+string(p.Altitude))
		}
	}
	parts = given(parts, "pathloss", j.Pathloss)
	parts = given(parts, "frequency", j.Frequency)
	return strings.Join(given(parts, "bandwidth", j.Bandwidth), ",")
}

// begun is what a part of a network began with.
type begun struct {
	what  string
	holds []string
}

// beginnings of a network, in the words of a change.
func beginnings(network v1alpha1.Network, named map[string]v1alpha1.WaveformSpec) (all []begun) {
	waveform, inPlace := render.InPlace(network)
	what := waveform.Model()
	if !inPlace {
		waveform, what = named[network.Waveform], "waveform "+network.Waveform
	}
	switch {
	case waveform.Link != nil:
		all = append(all, begun{what, describePatch(asPatch(*waveform.Link))})
	case waveform.RFPipe != nil:
		all = append(all, begun{what, describeRadio(pipeAsPatch(*waveform.RFPipe))})
	case waveform.TDMA != nil:
		all = append(all, begun{what, describeTDMA(*waveform.TDMA)})
	}
	if waveform.Downlink != nil {
		all = append(all, begun{"its downlink, from " + strings.Join(network.Base, ", "), describePatch(asPatch(*waveform.Downlink))})
	}
	for _, l := range network.Links {
		all = append(all, begun{"link --from " + l.From + " --to " + l.To, describePatch(asPatch(l.LinkModel))})
	}
	for _, r := range network.Radios {
		patch := v1alpha1.RadioPatch{TransmitPower: r.TransmitPower, AntennaGain: r.AntennaGain, NoiseFigure: r.NoiseFigure}
		all = append(all, begun{"radios of " + strings.Join(r.Nodes, ", "), describeRadio(patch)})
	}
	return all
}

// pipeAsPatch shows an RF pipe with the words of a change; it leaves out what has no effect.
func pipeAsPatch(m v1alpha1.RFPipeModel) v1alpha1.RadioPatch {
	patch := physicalAsPatch(m.PHY)
	patch.Rate, patch.Frequency = notEmpty(m.Rate), notEmpty(m.PHY.Frequency)
	if m.Delay.Std() != 0 {
		patch.Delay = &m.Delay
	}
	if m.Jitter.Std() != 0 {
		patch.Jitter = &m.Jitter
	}
	return patch
}

// describeTDMA shows a schedule, which has rates and powers of its own, or the rate of the one that is generated, unless the SINR decides.
func describeTDMA(m v1alpha1.TDMAModel) []string {
	patch := physicalAsPatch(m.PHY)
	if m.Schedule != "" {
		patch.TransmitPower = nil
		return append([]string{describeSchedule(m.Schedule)}, describeRadio(patch)...)
	}
	if len(m.AdaptiveRates) == 0 {
		patch.Rate = notEmpty(m.Rate)
	}
	return describeRadio(patch)
}

func physicalAsPatch(p v1alpha1.PHY) v1alpha1.RadioPatch {
	patch := v1alpha1.RadioPatch{TransmitPower: notEmpty(p.TransmitPower), NoiseFigure: notEmpty(p.NoiseFigure)}
	if p.AntennaGain.DBi() != 0 {
		patch.AntennaGain = &p.AntennaGain
	}
	return patch
}

func notEmpty[T ~string](value T) *T {
	if value == "" {
		return nil
	}
	return &value
}
