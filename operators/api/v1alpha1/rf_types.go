package v1alpha1

// Engine carries the frames of a network's radio model.
//
// +kubebuilder:validation:Enum=native;emane
type Engine string

// The engines: radiod's own models, or EMANE in a pod of the platform.
const (
	EngineNative Engine = "native"
	EngineEMANE  Engine = "emane"
)

// Interference says which other transmissions raise the noise at a receiver.
//
// +kubebuilder:validation:Enum=None;OutOfBand;All
type Interference string

// The kinds of interference: none; transmissions of other waveforms (another subid or frequency whose band overlaps, and
// jammers); those and the network's own transmissions that overlap in time and frequency with the one received.
const (
	InterferenceNone      Interference = "None"
	InterferenceOutOfBand Interference = "OutOfBand"
	InterferenceAll       Interference = "All"
)

// PathlossSource is where a network's pathloss comes from.
//
// +kubebuilder:validation:Enum=Scenario;FreeSpace;TwoRay
type PathlossSource string

// The sources of pathloss: the scenario's pathloss as it is; or the positions of the scenario or of the nodes, over the
// free-space or the two-ray flat-earth model.
const (
	PathlossScenario  PathlossSource = "Scenario"
	PathlossFreeSpace PathlossSource = "FreeSpace"
	PathlossTwoRay    PathlossSource = "TwoRay"
)

// Defaults of radios, for specs that no API server has completed. They are those of the fields below.
const (
	DefaultFrequency Frequency = "2347MHz"
	DefaultBandwidth Frequency = "1MHz"
	DefaultRate      DataRate  = "1Mbit"
)

// PHY is the physical layer of a radio: received power is transmitPower + both antennas' gains - pathloss; what lies below
// the sensitivity, -174 dBm/Hz + noiseFigure + 10·log10(bandwidth), is not received at all, and a frame above it by its
// SINR over the packet completion rate (PCR) curve. Semantics and defaults are those of EMANE's physical layer.
type PHY struct {
	// frequency of the carrier, such as 300MHz. A TDMA schedule may change it per slot.
	// +kubebuilder:default="2347MHz"
	// +optional
	Frequency Frequency `json:"frequency,omitempty"`
	// bandwidth that is received, and over which noise is counted, such as 250kHz.
	// +kubebuilder:default="1MHz"
	// +optional
	Bandwidth Frequency `json:"bandwidth,omitempty"`
	// transmitPower of every radio, such as 37dBm or 5W; radios of the network may differ.
	// +kubebuilder:default="0dBm"
	// +optional
	TransmitPower Power `json:"transmitPower,omitempty"`
	// antennaGain of every radio, omnidirectional, such as 2dBi.
	// +kubebuilder:default="0dBi"
	// +optional
	AntennaGain Gain `json:"antennaGain,omitempty"`
	// noiseFigure of every receiver, such as 4dB.
	// +kubebuilder:default="4dB"
	// +optional
	NoiseFigure Decibel `json:"noiseFigure,omitempty"`
	// pathloss between radios: Scenario uses that of the scenario, FreeSpace and TwoRay compute it from positions.
	// +kubebuilder:default=Scenario
	// +optional
	Pathloss PathlossSource `json:"pathloss,omitempty"`
	// antennaHeight above the ground of every radio, for TwoRay: a position's altitude, above the sea, does not tell it.
	// +kubebuilder:default="3m"
	// +optional
	AntennaHeight Metres `json:"antennaHeight,omitempty"`
	// subid separates waveforms that share a frequency: a radio receives only its own waveform.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	SubID int32 `json:"subid,omitempty"`
}

// RFPipeModel sends each frame at once at a fixed rate, as EMANE's RF Pipe does: without channel access, so that the rate is
// each node's own, unless halfDuplex or interference make the medium a shared one.
type RFPipeModel struct {
	// phy is the physical layer.
	// +kubebuilder:default={}
	// +optional
	PHY PHY `json:"phy,omitempty"`
	// rate at which a node sends, such as 175kbit.
	// +kubebuilder:default="1Mbit"
	// +optional
	Rate DataRate `json:"rate,omitempty"`
	// delay of every frame beside its time on air and its propagation.
	// +kubebuilder:default="0ms"
	// +optional
	Delay Duration `json:"delay,omitempty"`
	// jitter of the delay: uniform from -jitter/2 to +jitter/2, as in EMANE.
	// +kubebuilder:default="0ms"
	// +optional
	Jitter Duration `json:"jitter,omitempty"`
	// queueDepth is the most frames that may wait at a node; beyond it the oldest waiting one is dropped, as in EMANE.
	// +kubebuilder:default=255
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	QueueDepth int32 `json:"queueDepth,omitempty"`
	// interference that counts as noise. EMANE's RF Pipe knows None and OutOfBand; All is for the native engine.
	// +kubebuilder:default=None
	// +optional
	Interference Interference `json:"interference,omitempty"`
	// halfDuplex radios receive nothing while they send. EMANE's RF Pipe is full duplex; native engine only.
	// +optional
	HalfDuplex bool `json:"halfDuplex,omitempty"`
	// dutyCycle is the share of time in which a node may send, such as 1%: after each frame it waits until the frame's time on air is that
	// share. Without it a node may always send. Native engine only.
	// +optional
	DutyCycle *Percent `json:"dutyCycle,omitempty"`
	// pcr is the packet completion rate curve: the text of an EMANE RF Pipe PCR file. Without it every frame above the
	// sensitivity is received.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	PCR string `json:"pcr,omitempty"`
}

// TDMAStructure divides time into multiframes of frames of slots. Multiframes are aligned to the Unix epoch.
type TDMAStructure struct {
	// frames of a multiframe.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	Frames int32 `json:"frames,omitempty"`
	// slots of a frame; without it as many as the network has members.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional
	Slots *int32 `json:"slots,omitempty"`
	// slotDuration, such as 5ms.
	// +kubebuilder:default="5ms"
	// +optional
	SlotDuration Duration `json:"slotDuration,omitempty"`
	// slotOverhead is the part of a slot that carries no data: synchronisation, propagation, guard time.
	// +kubebuilder:default="0ms"
	// +optional
	SlotOverhead Duration `json:"slotOverhead,omitempty"`
}

// TDMARate is a rate that a node may send at where the SINR at the receiver allows it.
type TDMARate struct {
	// rate of the slot.
	Rate DataRate `json:"rate"`
	// sinr at the receiver from which the rate is used, such as 10dB. The lowest rate is used below every threshold, too.
	SINR Decibel `json:"sinr"`
}

// TDMAQueue of a node, one for each of four service classes by DSCP: 0-7 and 24-31 are class 0, 8-23 class 1, 32-47 class 2,
// 48-63 class 3. The class of a slot goes first in it, then the others from the highest on.
type TDMAQueue struct {
	// depth of each queue in frames; beyond it the oldest of which no part has been sent is dropped, as in EMANE.
	// +kubebuilder:default=256
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Depth int32 `json:"depth,omitempty"`
	// aggregation packs several frames into a slot.
	// +kubebuilder:default=true
	// +optional
	Aggregation *bool `json:"aggregation,omitempty"`
	// aggregationThreshold is how full a slot may be that frames of other classes than its own are added.
	// +kubebuilder:default="90%"
	// +optional
	AggregationThreshold Percent `json:"aggregationThreshold,omitempty"`
	// fragmentation spreads a frame over several slots. Without it a frame larger than a slot of its class is dropped.
	// +kubebuilder:default=true
	// +optional
	Fragmentation *bool `json:"fragmentation,omitempty"`
	// strictDequeue sends only frames of a slot's own class in it; else lower classes follow where room is left.
	// +optional
	StrictDequeue bool `json:"strictDequeue,omitempty"`
}

// TDMAModel gives each node slots of its own on a shared channel, as EMANE's TDMA event scheduler radio model does.
type TDMAModel struct {
	// phy is the physical layer.
	// +kubebuilder:default={}
	// +optional
	PHY PHY `json:"phy,omitempty"`
	// structure of the generated schedule.
	// +kubebuilder:default={}
	// +optional
	Structure TDMAStructure `json:"structure,omitempty"`
	// rate of the generated schedule's slots.
	// +kubebuilder:default="1Mbit"
	// +optional
	Rate DataRate `json:"rate,omitempty"`
	// adaptiveRates let a node choose, frame by frame, the highest rate whose threshold the SINR at the receiver reaches (at
	// the worst of the receivers in range, for broadcasts). Without them rate, or that of the schedule, applies. With engine emane a
	// node has one rate for all its frames, that of its worst receiver.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	AdaptiveRates []TDMARate `json:"adaptiveRates,omitempty"`
	// schedule is the text of an EMANE TDMA schedule file with NEM ids of the network's members. Without it one is generated:
	// slots go round robin to the members in order of their NEM ids.
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// queue of every node.
	// +kubebuilder:default={}
	// +optional
	Queue TDMAQueue `json:"queue,omitempty"`
	// interference that counts as noise.
	// +kubebuilder:default=All
	// +optional
	Interference Interference `json:"interference,omitempty"`
	// pcr is the packet completion rate curve: the text of an EMANE TDMA PCR file, by data rate. Without it every frame
	// above the sensitivity is received.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	PCR string `json:"pcr,omitempty"`
}

// Radio has the different settings of some nodes' radios.
type Radio struct {
	// nodes or groups whose radios these are.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=24
	// +listType=atomic
	Nodes []string `json:"nodes"`
	// transmitPower of these radios.
	// +optional
	TransmitPower *Power `json:"transmitPower,omitempty"`
	// antennaGain of these radios.
	// +optional
	AntennaGain *Gain `json:"antennaGain,omitempty"`
	// noiseFigure of these receivers.
	// +optional
	NoiseFigure *Decibel `json:"noiseFigure,omitempty"`
	// antennaHeight above the ground of these radios, for TwoRay.
	// +optional
	AntennaHeight *Metres `json:"antennaHeight,omitempty"`
}

// RadioPatch changes the radios of some or all nodes of a network. Its values replace the current ones.
//
// +kubebuilder:validation:MinProperties=1
type RadioPatch struct {
	// transmitPower from now on.
	// +optional
	TransmitPower *Power `json:"transmitPower,omitempty"`
	// antennaGain from now on.
	// +optional
	AntennaGain *Gain `json:"antennaGain,omitempty"`
	// noiseFigure from now on.
	// +optional
	NoiseFigure *Decibel `json:"noiseFigure,omitempty"`
	// frequency from now on; rfpipe only, as a TDMA schedule has its own.
	// +optional
	Frequency *Frequency `json:"frequency,omitempty"`
	// transmit: false is radio silence (EMCON): these radios send nothing, but still receive.
	// +optional
	Transmit *bool `json:"transmit,omitempty"`
	// rate from now on: of rfpipe, or of the generated TDMA schedule.
	// +optional
	Rate *DataRate `json:"rate,omitempty"`
	// delay from now on; rfpipe only.
	// +optional
	Delay *Duration `json:"delay,omitempty"`
	// jitter from now on; rfpipe only.
	// +optional
	Jitter *Duration `json:"jitter,omitempty"`
}

// Jammer is a source of noise. A later change of the same name replaces it.
//
// +kubebuilder:validation:XValidation:rule="has(self.silent) && self.silent || has(self.off) && self.off || has(self.__false__) && self.__false__ || has(self.power)",message="a jammer needs power, unless it is silent",fieldPath=".power"
// +kubebuilder:validation:XValidation:rule="has(self.silent) && self.silent || has(self.off) && self.off || has(self.__false__) && self.__false__ || has(self.position) != has(self.pathloss)",message="a jammer needs either its position or its pathloss to every node",fieldPath=".position"
type Jammer struct {
	// name of the jammer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	Name string `json:"name"`
	// silent ends the jammer.
	// +optional
	Silent bool `json:"silent,omitempty"`
	// off is the former name of silent, read for one version.
	// +optional
	Off bool `json:"off,omitempty"`
	// false is what YAML 1.1 makes of the key off, read for one version.
	// +optional
	False bool `json:"false,omitempty"`
	// position of the jammer; its pathloss to every node is that of free space, or of two rays where the network says TwoRay.
	// +optional
	Position *Position `json:"position,omitempty"`
	// pathloss from the jammer to every node, instead of a position.
	// +optional
	Pathloss *Decibel `json:"pathloss,omitempty"`
	// power of the jammer, with its antenna's gain (EIRP).
	// +optional
	Power *Power `json:"power,omitempty"`
	// frequency of the noise; by default the network's own.
	// +optional
	Frequency *Frequency `json:"frequency,omitempty"`
	// bandwidth of the noise; by default the network's own.
	// +optional
	Bandwidth *Frequency `json:"bandwidth,omitempty"`
}

// Ended reports whether the jammer is silent, by any of the field's names.
func (j *Jammer) Ended() bool { return j.Silent || j.Off || j.False }

// Position on the WGS 84 ellipsoid.
type Position struct {
	// latitude in degrees, north positive, such as "58.19".
	Latitude Degrees `json:"latitude"`
	// longitude in degrees, east positive, such as "7.98".
	Longitude Degrees `json:"longitude"`
	// altitude above mean sea level, such as 120m.
	// +kubebuilder:default="0m"
	// +optional
	Altitude Metres `json:"altitude,omitempty"`
}

// RoutingProtocol is who sets the routes of a network's nodes.
//
// +kubebuilder:validation:Enum=none;static;olsrv2;olsrv1;babel
type RoutingProtocol string

// The routing protocols.
const (
	RoutingNone   RoutingProtocol = "none"
	RoutingStatic RoutingProtocol = "static"
	RoutingOLSRv2 RoutingProtocol = "olsrv2"
	RoutingOLSRv1 RoutingProtocol = "olsrv1"
	RoutingBabel  RoutingProtocol = "babel"
)

// SetsRoutes reports whether something sets routes on a network with this routing, which may be nil.
func (r *Routing) SetsRoutes() bool {
	return r != nil && r.Protocol != "" && r.Protocol != RoutingNone
}

// LinkMetric of OLSRv2.
//
// +kubebuilder:validation:Enum=hopcount;dat
type LinkMetric string

// The metrics: hops, or directional airtime (RFC 7779).
const (
	MetricHopCount LinkMetric = "hopcount"
	MetricDAT      LinkMetric = "dat"
)

// Routing of a network. All networks of a node with the same protocol are one routing domain, across which the node forwards.
//
// +kubebuilder:validation:XValidation:rule="!has(self.routes) || self.protocol == 'static'",message="routes are for protocol static",fieldPath=".routes"
// +kubebuilder:validation:XValidation:rule="!has(self.hello) || !self.hello.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.hello) >= duration('10ms') && duration(self.hello) <= duration(self.protocol == 'babel' ? '655s' : self.protocol == 'olsrv1' ? (has(self.helloValidity) ? '3968s' : '1322s') : has(self.helloValidity) ? '24h' : '8h')",message="hello must be from 10ms to 8h, or to 24h with helloValidity; to 1322s for olsrv1, or to 3968s with helloValidity; to 655s for babel",fieldPath=".hello"
// +kubebuilder:validation:XValidation:rule="!has(self.helloValidity) || !self.helloValidity.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || has(self.hello) && !self.hello.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.helloValidity) >= duration(has(self.hello) ? self.hello : '2s') && duration(self.helloValidity) <= duration(self.protocol == 'olsrv1' ? '3968s' : '24h')",message="helloValidity must be from hello, which is 2s by default, to 24h, or to 3968s for olsrv1, whose messages can say no more: else a neighbour is forgotten before its next message",fieldPath=".helloValidity"
// +kubebuilder:validation:XValidation:rule="!has(self.tc) || !self.tc.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.tc) >= duration('10ms') && duration(self.tc) <= duration(self.protocol == 'olsrv1' ? (has(self.tcValidity) ? '3968s' : '1322s') : has(self.tcValidity) ? '24h' : '8h')",message="tc must be from 10ms to 8h, or to 24h with tcValidity; to 1322s for olsrv1, or to 3968s with tcValidity",fieldPath=".tc"
// +kubebuilder:validation:XValidation:rule="!has(self.tcValidity) || !self.tcValidity.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || has(self.tc) && !self.tc.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.tcValidity) >= duration(has(self.tc) ? self.tc : '5s') && duration(self.tcValidity) <= duration(self.protocol == 'olsrv1' ? '3968s' : '24h')",message="tcValidity must be from tc, which is 5s by default, to 24h, or to 3968s for olsrv1, whose messages can say no more: else a neighbour is forgotten before its next message",fieldPath=".tcValidity"
type Routing struct {
	// protocol: none, static, olsrv2, olsrv1 or babel. A daemon of your own in virtual machines may route as well: leave it at none then.
	// +kubebuilder:default=none
	// +optional
	Protocol RoutingProtocol `json:"protocol,omitempty"`
	// hello interval on this network; by default the protocol's own (2s for OLSR).
	// +optional
	Hello *Duration `json:"hello,omitempty"`
	// helloValidity is how long a HELLO holds; by default three times hello, as RFC 3626 and RFC 6130 have it.
	// +optional
	HelloValidity *Duration `json:"helloValidity,omitempty"`
	// tc interval of topology control messages on this network; by default 5s. TCs that come over a network with a shorter tc go on over
	// this one at this interval.
	// +optional
	TC *Duration `json:"tc,omitempty"`
	// tcValidity is how long a TC holds; by default three times the longest tc of the networks that one domain has.
	// +optional
	TCValidity *Duration `json:"tcValidity,omitempty"`
	// metric of links, for olsrv2.
	// +kubebuilder:default=hopcount
	// +optional
	Metric LinkMetric `json:"metric,omitempty"`
	// topologies beside that of metric, for olsrv2 (RFC 7722). Packets with a topology's DSCPs take its routes where there are some.
	// +kubebuilder:validation:MaxItems=2
	// +listType=map
	// +listMapKey=name
	// +optional
	Topologies []RoutingTopology `json:"topologies,omitempty"`
	// routes for protocol static.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Routes []StaticRoute `json:"routes,omitempty"`
}

// RoutingTopology is a topology of a routing domain. The networks that have it are in it.
type RoutingTopology struct {
	// name of the topology, such as bulk.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// metric of links in it.
	Metric LinkMetric `json:"metric"`
	// dscp has the DSCPs, 0 to 63, of the packets that take its routes.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=63
	// +listType=set
	DSCP []int32 `json:"dscp"`
	// metricType of the topology in messages, the type extension of LINK_METRIC; by default 224 for hopcount, 225 for dat.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=255
	// +optional
	MetricType *int32 `json:"metricType,omitempty"`
}

// The default metric types are the first of those for experimental use (RFC 7181 section 24.5).
const (
	hopCountType = 224
	datType      = 225
)

// Type of the topology's metric in messages.
func (t *RoutingTopology) Type() uint8 {
	switch {
	case t.MetricType != nil:
		return uint8(*t.MetricType) //nolint:gosec // 1 to 255
	case t.Metric == MetricDAT:
		return datType
	}
	return hopCountType
}

// StaticRoute of some nodes.
type StaticRoute struct {
	// nodes or groups that have the route; without any all that are attached.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=24
	// +listType=atomic
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// to is a node's name, or a subnet in CIDR form.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	To string `json:"to"`
	// via is the name of the node, on this network, that forwards.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	Via string `json:"via"`
}
