package emane

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// fadingModel is the parameter of EMANE's physical layer with what happens to signals on their way.
const fadingModel = "fading.model"

// Values of the parameter that are no models.
const (
	noFading      = "none"
	fadingByEvent = "event"
)

// fadingOf is the value of a member's parameter.
func fadingOf(spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member) string {
	for _, raw := range rawOf(&spec.Waveform, member) {
		if raw.Layer == v1alpha1.EMANELayerPHY && raw.Name == fadingModel {
			return raw.Values[0]
		}
	}
	if spec.FadingSelections {
		return fadingByEvent
	}
	return noFading
}

func anyFading(spec *v1alpha1.RadioNetworkSpec, is func(model string) bool) bool {
	return spec.Waveform.PHY() != nil && slices.ContainsFunc(spec.Members, func(m v1alpha1.Member) bool { return is(fadingOf(spec, &m)) })
}

// Fades reports whether signals of a network fade. EMANE then drops those between radios without locations.
func Fades(spec *v1alpha1.RadioNetworkSpec) bool {
	return anyFading(spec, func(model string) bool { return model != noFading })
}

// fadings that have changed, or all. A NEM that has no selection for another one receives nothing from it.
func (f *Feed) fadings(all bool) (events []Event) {
	if !f.selectsFading {
		return nil
	}
	return toReceivers(f, FadingSelectionEvent, func(to int) (here []*emanepb.FadingSelection) {
		for from, fading := range changed(f, f.selected, to, all, f.fading) {
			here = append(here, &emanepb.FadingSelection{From: f.nem(from), Model: modelOfFading[fading].Enum()})
		}
		return here
	}, func(some []*emanepb.FadingSelection) proto.Message {
		return &emanepb.FadingSelections{Selections: some}
	})
}

var modelOfFading = map[scenario.Fading]emanepb.FadingSelection_Model{
	scenario.FadingNone: emanepb.FadingSelection_NONE, scenario.FadingNakagami: emanepb.FadingSelection_NAKAGAMI,
	scenario.FadingLognormal: emanepb.FadingSelection_LOGNORMAL,
}

func (f *Feed) fading(from, to int) scenario.Fading {
	a, b := f.members[from].index, f.members[to].index
	if a < 0 || b < 0 || a == b {
		return scenario.FadingNone
	}
	selected, _ := f.cursor.FadingSelection(a, b)
	return selected
}
