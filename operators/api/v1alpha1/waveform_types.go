package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LinkModel limits a node's egress onto a network, shared by all its destinations, as
// `tc netem rate/delay/loss/limit` on that interface would. A frame of n bytes (Ethernet header
// included, no FCS) arrives delay + 8·n/rate after the link became free for it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gilbertElliott) || !self.loss.matches('[1-9]')",message="loss and gilbertElliott are two models of the same thing: give one of them",fieldPath=".loss"
type LinkModel struct {
	// rate at which the sender's link serialises frames, such as 9.8kbit. Without it frames take no time to send.
	// +optional
	Rate *DataRate `json:"rate,omitempty"`

	// delay of every frame, one way, after it has been serialised, such as 100ms.
	// +kubebuilder:default="0ms"
	// +optional
	Delay Duration `json:"delay,omitempty"`

	// jitter varies the delay from frame to frame, as jitterDistribution says. A delay below zero becomes zero.
	// +kubebuilder:default="0ms"
	// +optional
	Jitter Duration `json:"jitter,omitempty"`

	// jitterDistribution of the delay about its mean: uniform (evenly from delay - jitter to delay + jitter), normal (with jitter as
	// standard deviation), or netem's pareto and paretonormal, which have long tails towards greater delays.
	// +kubebuilder:default=uniform
	// +optional
	JitterDistribution JitterDistribution `json:"jitterDistribution,omitempty"`

	// jitterCorrelation of a frame's delay with that of the frame before. The distribution stays as it is.
	// +optional
	JitterCorrelation *Percent `json:"jitterCorrelation,omitempty"`

	// reorder lets a frame overtake the ones before it when its jitter is smaller. Without it a frame waits for the ones
	// before it, so that frames arrive in the order in which they were sent.
	// +optional
	Reorder bool `json:"reorder,omitempty"`

	// loss is the share of frames lost, drawn once per frame before the queue, for all its receivers together.
	// +kubebuilder:default="0%"
	// +optional
	Loss Percent `json:"loss,omitempty"`

	// lossCorrelation of a frame's loss with that of the frame before. The share of loss stays as it is.
	// +optional
	LossCorrelation *Percent `json:"lossCorrelation,omitempty"`

	// gilbertElliott makes losses come in bursts, instead of loss.
	// +optional
	GilbertElliott *GilbertElliott `json:"gilbertElliott,omitempty"`

	// duplicate is the share of frames sent twice, drawn once per frame that was not lost. The second one follows the
	// first through the queue, and takes the link's time as well.
	// +kubebuilder:default="0%"
	// +optional
	Duplicate Percent `json:"duplicate,omitempty"`

	// corrupt is the share of frames that arrive with one wrong bit, drawn for each frame that was not lost.
	// +optional
	Corrupt *Percent `json:"corrupt,omitempty"`

	// limit is the maximum number of frames that may wait or be in transit on the link; the newest frame is dropped when it is reached.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Limit int32 `json:"limit,omitempty"`

	// limitBytes is the maximum number of bytes that may wait or be in transit on the link, beside limit; the newest frame is dropped
	// when it would go beyond. Without it only limit holds.
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=4294967296
	// +optional
	LimitBytes *int64 `json:"limitBytes,omitempty"`
}

// JitterDistribution is how the delay of frames spreads about its mean.
//
// +kubebuilder:validation:Enum=uniform;normal;pareto;paretonormal
type JitterDistribution string

// The distributions of jitter.
const (
	JitterUniform      JitterDistribution = "uniform"
	JitterNormal       JitterDistribution = "normal"
	JitterPareto       JitterDistribution = "pareto"
	JitterParetoNormal JitterDistribution = "paretonormal"
)

// GilbertElliott is the two-state loss model of Gilbert (1960) and Elliott (1963): a link is good or
// bad, changes its state before each frame with the given probabilities, and loses frames by the
// state it is in. It begins good. In the long run the link is bad for
// goodToBad / (goodToBad + badToGood) of the frames, in stretches of 1 / badToGood frames on average.
type GilbertElliott struct {
	// goodToBad is the probability, before each frame, that a good link becomes bad.
	GoodToBad Percent `json:"goodToBad"`
	// badToGood is the probability, before each frame, that a bad link becomes good.
	BadToGood Percent `json:"badToGood"`
	// lossInBad is the share of frames lost while the link is bad.
	// +kubebuilder:default="100%"
	// +optional
	LossInBad Percent `json:"lossInBad,omitempty"`
	// lossInGood is the share of frames lost while the link is good.
	// +kubebuilder:default="0%"
	// +optional
	LossInGood Percent `json:"lossInGood,omitempty"`
}

// LinkPatch changes a link. Its values replace the current ones; the others stay.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.gilbertElliott) || !has(self.loss)",message="loss and gilbertElliott are two models of the same thing: give one of them",fieldPath=".loss"
type LinkPatch struct {
	// rate at which the sender's link serialises frames from now on, such as 9.8kbit.
	// +optional
	Rate *DataRate `json:"rate,omitempty"`
	// delay of every frame, one way, after it has been serialised.
	// +optional
	Delay *Duration `json:"delay,omitempty"`
	// jitter of the delay.
	// +optional
	Jitter *Duration `json:"jitter,omitempty"`
	// jitterDistribution of the delay about its mean.
	// +optional
	JitterDistribution *JitterDistribution `json:"jitterDistribution,omitempty"`
	// jitterCorrelation of a frame's delay with that of the frame before.
	// +optional
	JitterCorrelation *Percent `json:"jitterCorrelation,omitempty"`
	// reorder lets frames overtake each other.
	// +optional
	Reorder *bool `json:"reorder,omitempty"`
	// loss is the share of frames lost; it ends gilbertElliott, if that held.
	// +optional
	Loss *Percent `json:"loss,omitempty"`
	// lossCorrelation of a frame's loss with that of the frame before; for loss.
	// +optional
	LossCorrelation *Percent `json:"lossCorrelation,omitempty"`
	// gilbertElliott makes losses come in bursts; it ends loss, if that held.
	// +optional
	GilbertElliott *GilbertElliott `json:"gilbertElliott,omitempty"`
	// duplicate is the share of frames sent twice.
	// +optional
	Duplicate *Percent `json:"duplicate,omitempty"`
	// corrupt is the share of frames that arrive with one wrong bit.
	// +optional
	Corrupt *Percent `json:"corrupt,omitempty"`
	// limit is the maximum number of frames that may wait or be in transit. Frames beyond a lowered limit are not dropped.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Limit *int32 `json:"limit,omitempty"`
	// limitBytes is the maximum number of bytes that may wait or be in transit.
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=4294967296
	// +optional
	LimitBytes *int64 `json:"limitBytes,omitempty"`
}

// RadioChange changes how a network carries frames from one moment on. Frames in transit keep their times.
//
// +kubebuilder:validation:XValidation:rule="has(self.link) || has(self.silent) || has(self.radio) || has(self.schedule) || has(self.jammer)",message="a change of a network needs link, silent, radio, schedule or jammer"
// +kubebuilder:validation:XValidation:rule="!has(self.to) || has(self.link) || !(has(self.radio) || has(self.schedule) || has(self.jammer))",message="to is for a change of the link: leave it out",fieldPath=".to"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || has(self.link) || has(self.radio) || !(has(self.schedule) || has(self.jammer))",message="a schedule and a jammer are for the whole network: leave out from",fieldPath=".from"
// +kubebuilder:validation:XValidation:rule="!has(self.silent) || !has(self.from) && !has(self.to)",message="silent is for the whole network: leave out from and to; for one node set radio: {transmit: false}, or on a link network link: {loss: 100%} from it and to it",fieldPath=".silent"
// +kubebuilder:validation:XValidation:rule="!has(self.link) || !(has(self.radio) || has(self.schedule) || has(self.jammer))",message="link is for networks of the link model, radio, schedule and jammer are for rfpipe and tdma: no network takes both",fieldPath=".link"
type RadioChange struct {
	// network that changes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=12
	Network string `json:"network"`

	// from is the group (or node) whose frames the change of the link is for; without it, or with *, of all nodes. With from or to
	// the change is for the link from one to the other alone, which begins as the network's own link where the network
	// has none for them in links.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +optional
	From string `json:"from,omitempty"`

	// to is the group (or node) that the frames go to; without it, or with *, to all nodes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +optional
	To string `json:"to,omitempty"`

	// link has what changes of the link model; only for networks whose model is link.
	// +optional
	Link *LinkPatch `json:"link,omitempty"`

	// silent radios send and receive nothing, all of the network's, until another change says false.
	// +optional
	Silent *bool `json:"silent,omitempty"`

	// radio has what changes of the radios of from, or of all; only for networks whose model is rfpipe or tdma.
	// +optional
	Radio *RadioPatch `json:"radio,omitempty"`

	// schedule is an EMANE TDMA schedule file that applies from the next multiframe on; only for networks whose model is tdma.
	// One without structure updates the current schedule.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// jammer starts, changes or ends a source of noise; only for networks whose model is rfpipe or tdma.
	// +optional
	Jammer *Jammer `json:"jammer,omitempty"`
}

// WaveformSpec is how a network carries frames. It has exactly one model.
//
// +kubebuilder:validation:XValidation:rule="[has(self.link), has(self.rfpipe), has(self.tdma), has(self.emane) && has(self.emane.model)].filter(model, model).size() == 1",message="a waveform needs one model: link, rfpipe, tdma or emane.model"
// +kubebuilder:validation:XValidation:rule="!has(self.emane) || !has(self.link)",message="emane is for radios, and the link model is radiod's own",fieldPath=".emane",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.downlink) || has(self.link)",message="downlink is for the model link",fieldPath=".downlink",reason=FieldValueForbidden
type WaveformSpec struct {
	// description for people: what the waveform stands for and where its figures come from.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// link is a point-to-point style limit on every sender's egress, without positions and a shared medium.
	// +optional
	Link *LinkModel `json:"link,omitempty"`

	// downlink is the link on the egress of the nodes that a network names as its base, such as the base station of a
	// cellular network: link is then the uplink of all others. Networks with such a waveform must name their base.
	// +optional
	Downlink *LinkModel `json:"downlink,omitempty"`

	// rfpipe is a radio without channel access at a fixed rate, over pathloss.
	// +optional
	RFPipe *RFPipeModel `json:"rfpipe,omitempty"`

	// tdma is a radio with time slots on a shared channel, over pathloss.
	// +optional
	TDMA *TDMAModel `json:"tdma,omitempty"`

	// emane has settings of EMANE's own: parameters beside rfpipe and tdma, or a model in their place. It needs engine emane.
	// +optional
	EMANE *EMANESettings `json:"emane,omitempty"`
}

// The models of a waveform, by the names of their fields.
const (
	ModelLink   = "link"
	ModelRFPipe = "rfpipe"
	ModelTDMA   = "tdma"
	ModelEMANE  = "emane"
)

// Model is the name of the waveform's model; empty if it has none.
func (w *WaveformSpec) Model() string {
	switch {
	case w.Link != nil:
		return ModelLink
	case w.RFPipe != nil:
		return ModelRFPipe
	case w.TDMA != nil:
		return ModelTDMA
	case w.EMANE != nil:
		return ModelEMANE
	}
	return ""
}

// PHY is the waveform's physical layer; nil for models that have none, such as link.
func (w *WaveformSpec) PHY() *PHY {
	switch {
	case w.RFPipe != nil:
		return &w.RFPipe.PHY
	case w.TDMA != nil:
		return &w.TDMA.PHY
	case w.EMANE != nil:
		return w.EMANE.PHY
	default:
		return nil
	}
}

// PathlossFrom is where pathlosses come from, with the default.
func (p *PHY) PathlossFrom() PathlossSource { return cmp.Or(p.Pathloss, PathlossScenario) }

// Waveform is a named radio or link model that any experiment of any team may use.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=wav
// +kubebuilder:printcolumn:name="Rate",type=string,JSONPath=`.spec['link','rfpipe','tdma'].rate`
// +kubebuilder:printcolumn:name="Delay",type=string,JSONPath=`.spec['link','rfpipe'].delay`
// +kubebuilder:printcolumn:name="Loss",type=string,JSONPath=`.spec.link.loss`
// +kubebuilder:printcolumn:name="Frequency",type=string,JSONPath=`.spec['rfpipe','tdma','emane'].phy.frequency`
// +kubebuilder:printcolumn:name="Bandwidth",type=string,JSONPath=`.spec['rfpipe','tdma','emane'].phy.bandwidth`
// +kubebuilder:printcolumn:name="Slot",type=string,JSONPath=`.spec.tdma.structure.slotDuration`
// +kubebuilder:printcolumn:name="EMANE",type=string,JSONPath=`.spec.emane.model`,priority=1
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
type Waveform struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the waveform. Experiments copy it when they start; a later change has no effect on them.
	Spec WaveformSpec `json:"spec"`
}

// WaveformList is a list of waveforms.
//
// +kubebuilder:object:root=true
type WaveformList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Waveform `json:"items"`
}

func init() { SchemeBuilder.Register(&Waveform{}, &WaveformList{}) }

// InterferenceCounted by the receivers of the model, its default included; empty for models without a physical layer.
func (w *WaveformSpec) InterferenceCounted() Interference {
	switch {
	case w.RFPipe != nil:
		return cmp.Or(w.RFPipe.Interference, InterferenceNone)
	case w.TDMA != nil:
		return cmp.Or(w.TDMA.Interference, InterferenceAll)
	case w.EMANE != nil && w.EMANE.PHY != nil:
		return cmp.Or(w.EMANE.Interference, InterferenceNone)
	}
	return ""
}

// RateBitsPerSecond of the waveform as it begins; 0 is unknown.
func (w *WaveformSpec) RateBitsPerSecond() float64 {
	switch {
	case w.RFPipe != nil:
		return w.RFPipe.Rate.BitsPerSecond()
	case w.TDMA != nil:
		return w.TDMA.Rate.BitsPerSecond()
	case w.Link != nil && w.Link.Rate != nil:
		return w.Link.Rate.BitsPerSecond()
	}
	return 0
}
