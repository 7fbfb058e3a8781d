package emane

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// model is one of EMANE's models: the layer between the transport and the air.
type model struct {
	layer   v1alpha1.EMANELayer
	library string
	// phyLibrary is in place of EMANE's physical layer, which is not a library.
	phyLibrary string
	// transponders have frequencies, bandwidths, powers and antennas of their own, and send on what others send.
	transponders bool
	// slots that a process must not miss.
	slots      bool
	parameters func(p *Process, w *v1alpha1.WaveformSpec) []parameter
}

// models that are known, by their names in the API. Any other is the library of a MAC layer without parameters of its own.
var models = map[string]model{
	v1alpha1.ModelRFPipe:     {layer: v1alpha1.EMANELayerMAC, library: "rfpipemaclayer", parameters: (*Process).rfpipe},
	v1alpha1.ModelTDMA:       {layer: v1alpha1.EMANELayerMAC, library: "tdmaeventschedulerradiomodel", slots: true, parameters: (*Process).tdma},
	v1alpha1.EMANEWiFi:       {layer: v1alpha1.EMANELayerMAC, library: "ieee80211abgmaclayer", parameters: (*Process).wifi},
	v1alpha1.EMANEBentPipe:   {layer: v1alpha1.EMANELayerMAC, library: "emane-model-bentpipe", transponders: true, slots: true, parameters: (*Process).bentPipe},
	v1alpha1.EMANEBypass:     {layer: v1alpha1.EMANELayerMAC, library: "bypassmaclayer", phyLibrary: "bypassphylayer"},
	v1alpha1.EMANECommEffect: {layer: v1alpha1.EMANELayerShim, library: "commeffectshim", parameters: (*Process).commEffect},
}

func modelOf(w *v1alpha1.WaveformSpec) model {
	name := w.Model()
	if name == v1alpha1.ModelEMANE {
		name = w.EMANE.Model
	}
	if m, known := models[name]; known {
		return m
	}
	return model{layer: v1alpha1.EMANELayerMAC, library: name, slots: true} // it may have some
}

// HasSlots reports whether EMANE's processes of a waveform need real-time priority for time slots.
func HasSlots(w *v1alpha1.WaveformSpec) bool { return modelOf(w).slots }

// layers of a NEM under its transport, from the top.
func (m *model) layers() []v1alpha1.EMANELayer {
	if m.layer == v1alpha1.EMANELayerShim {
		return []v1alpha1.EMANELayer{v1alpha1.EMANELayerShim}
	}
	return []v1alpha1.EMANELayer{v1alpha1.EMANELayerMAC, v1alpha1.EMANELayerPHY}
}

// transport are the parameters of the boundary to the node's interface.
func (m *model) transport() []parameter {
	parameters := []parameter{{name: "bitrate", value: "0"}}
	if m.transponders {
		// The cache would take the relaying NEM for the owner of all addresses.
		parameters = append(parameters, parameter{name: "arpcacheenable", value: "off"})
	}
	return parameters
}

func (m *model) own(p *Process, w *v1alpha1.WaveformSpec) []parameter {
	if m.parameters == nil {
		return nil
	}
	return m.parameters(p, w)
}

func (p *Process) wifi(*v1alpha1.WaveformSpec) []parameter {
	return []parameter{{"enablepromiscuousmode", "off", ""}, {"flowcontrolenable", "off", ""}, {"pcrcurveuri", p.pcrURI(), "pcr"}}
}

func (p *Process) bentPipe(*v1alpha1.WaveformSpec) []parameter {
	return []parameter{{"pcrcurveuri", p.pcrURI(), "pcr"}}
}

// commEffect has no frame pass before the first event.
func (p *Process) commEffect(*v1alpha1.WaveformSpec) []parameter {
	return []parameter{{"defaultconnectivitymode", "off", "effect"}, {"enablepromiscuousmode", "off", ""}}
}

// rawOf are the parameters that a member has by the waveform's settings.
func rawOf(w *v1alpha1.WaveformSpec, member *v1alpha1.Member) []v1alpha1.EMANEParameter {
	if w.EMANE == nil {
		return nil
	}
	all := slices.Clone(w.EMANE.Parameters)
	for _, nodes := range w.EMANE.Nodes {
		if !slices.ContainsFunc(nodes.Names, member.IsCalled) {
			continue
		}
		for _, raw := range nodes.Parameters {
			all = slices.DeleteFunc(all, func(other v1alpha1.EMANEParameter) bool { return other.Layer == raw.Layer && other.Name == raw.Name })
			all = append(all, raw)
		}
	}
	return all
}

// withRaw are a layer's own parameters and those of the waveform's settings, which replace own ones that follow from no field.
func withRaw(own []parameter, raws []v1alpha1.EMANEParameter, layer v1alpha1.EMANELayer) (single []parameter, lists []v1alpha1.EMANEParameter) {
	for _, o := range own {
		if !slices.ContainsFunc(raws, func(raw v1alpha1.EMANEParameter) bool { return raw.Layer == layer && raw.Name == o.name }) {
			single = append(single, o)
		}
	}
	for _, raw := range raws {
		switch {
		case raw.Layer != layer:
		case len(raw.Values) == 1:
			single = append(single, parameter{name: raw.Name, value: raw.Values[0]})
		default:
			lists = append(lists, raw)
		}
	}
	return single, lists
}

// CheckSettings returns what is wrong with a waveform's settings of EMANE's own, whatever its network. path is that of the waveform.
func CheckSettings(w *v1alpha1.WaveformSpec, path *field.Path) (errs field.ErrorList) {
	if w.EMANE == nil {
		return nil
	}
	path = path.Child("emane")
	if w.EMANE.Model == v1alpha1.EMANEWiFi && w.EMANE.Interference == v1alpha1.InterferenceAll {
		errs = append(errs, field.Invalid(path.Child("interference"), w.EMANE.Interference, "EMANE's 802.11 model counts collisions of its own: want None or OutOfBand"))
	}
	if e := w.EMANE.Effect; e != nil {
		errs = append(errs, checkEffect(e, path.Child("effect"))...)
	}
	m, fromFields := modelOf(w), fieldsOf(w)
	masks, wrong := masksOf(w.EMANE.SpectralMasks)
	switch {
	case w.EMANE.SpectralMasks != "" && w.PHY() == nil:
		errs = append(errs, field.Forbidden(path.Child("spectralMasks"), "they are for models over EMANE's physical layer, and "+w.EMANE.Model+" has none: leave them out"))
	case wrong != nil:
		errs = append(errs, field.Invalid(path.Child("spectralMasks"), "", wrong.Error()))
	}
	check := func(parameters []v1alpha1.EMANEParameter, path *field.Path) {
		for i, raw := range parameters {
			at := path.Index(i)
			if layers := m.layers(); !slices.Contains(layers, raw.Layer) {
				errs = append(errs, field.NotSupported(at.Child("layer"), raw.Layer, layers))
			} else if by := fromFields[layerParameter{raw.Layer, raw.Name}]; by != "" {
				errs = append(errs, field.Invalid(at.Child("name"), raw.Name, by+" sets it: leave it out here"))
			} else if wrong == nil {
				errs = append(errs, checkMaskIndexes(&m, &raw, masks, at.Child("values"))...)
			}
		}
	}
	check(w.EMANE.Parameters, path.Child("parameters"))
	for i := range w.EMANE.Nodes {
		check(w.EMANE.Nodes[i].Parameters, path.Child("nodes").Index(i).Child("parameters"))
	}
	return errs
}

// checkNodes finds nodes of the waveform's settings that the network does not have.
func checkNodes(spec *v1alpha1.RadioNetworkSpec, path *field.Path) (errs field.ErrorList) {
	if spec.Waveform.EMANE == nil {
		return nil
	}
	for i, nodes := range spec.Waveform.EMANE.Nodes {
		for j, name := range nodes.Names {
			if !slices.ContainsFunc(spec.Members, func(m v1alpha1.Member) bool { return m.IsCalled(name) }) {
				errs = append(errs, field.Invalid(path.Child("emane", "nodes").Index(i).Child("names").Index(j), name,
					"the network has no node or group of this name, and the waveform has parameters for it"))
			}
		}
	}
	return errs
}

type layerParameter struct {
	layer v1alpha1.EMANELayer
	name  string
}

// fieldsOf are the fields that set parameters of EMANE's layers.
func fieldsOf(w *v1alpha1.WaveformSpec) map[layerParameter]string {
	m, all := modelOf(w), map[layerParameter]string{{v1alpha1.EMANELayerPHY, "radiosilenceenable"}: "silent"}
	add := func(layer v1alpha1.EMANELayer, parameters []parameter) {
		for _, own := range parameters {
			if own.field != "" {
				all[layerParameter{layer, own.name}] = w.Model() + "." + own.field
			}
		}
	}
	add(m.layer, m.own(&Process{}, w))
	if w.PHY() != nil {
		spec := &v1alpha1.RadioNetworkSpec{Waveform: *w}
		physical := phyOf(spec, &v1alpha1.Member{})
		add(v1alpha1.EMANELayerPHY, phyParameters(spec, &physical, (*Antennas)(nil).parameters(0, 0)))
	}
	return all
}

// checkEffect finds what EMANE's comm effect model does not have.
func checkEffect(e *v1alpha1.EMANEEffect, path *field.Path) (errs field.ErrorList) {
	if rate := e.Rate; rate != nil && rate.BitsPerSecond() < 1 {
		errs = append(errs, field.Invalid(path.Child("rate"), *rate, "EMANE has rates in whole bits per second, from 1 on"))
	}
	return errs
}

// stepCurveWiFi receives everything at each of the model's rates.
func stepCurveWiFi() string {
	rates := ""
	for index := 1; index <= 12; index++ {
		rates += `<datarate index="` + strconv.Itoa(index) + `"><row sinr="-255" por="0"/><row sinr="-254" por="100"/></datarate>`
	}
	return fmt.Sprintf(`<pcr><table pktsize="0">%s</table></pcr>`, rates)
}
