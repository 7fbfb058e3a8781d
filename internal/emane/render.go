package emane

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"net/netip"
	"path"
	"slices"
	"strconv"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// DefaultDTDs is where EMANE's packages install their document type definitions, which EMANE needs to read
// its files.
const DefaultDTDs = "/usr/share/emane/dtd"

// Default groups of EMANE's channels, and its control port.
var (
	DefaultOTAGroup   = netip.MustParseAddrPort("224.1.2.8:45702")
	DefaultEventGroup = netip.MustParseAddrPort("224.1.2.8:45703")
	DefaultControl    = netip.MustParseAddrPort("127.0.0.1:47000")
)

// Process describes where one NEM's EMANE process runs, and its resources there.
type Process struct {
	// Directory of its files, absolute: EMANE looks for PCR files in its working directory, not beside its
	// other files.
	Directory string
	// DTDs is the folder of EMANE's document type definitions; empty for DefaultDTDs.
	DTDs string
	// Device of the over-the-air and event channels.
	Device string
	// Groups of the channels, and the address of the control port, through which anybody may change
	// everything; zero for the defaults.
	OTAGroup, EventGroup, Control netip.AddrPort
	// HostOnly lets processes of one namespace receive each other over the air, and keeps the channels on the
	// host (a TTL of 0).
	HostOnly bool
	// OTAMTU in bytes above which EMANE fragments its messages, which are about 123 bytes longer than the
	// frame; 0 leaves that to IP.
	OTAMTU int
	// Interface of the node: a TAP that EMANE makes, or with Raw an existing interface such as a veth end.
	Interface string
	Raw       bool
	// Antennas of the network's members; nil where all have fixed gains.
	Antennas *Antennas
}

// The EMANE processes of a network's members on one host run in one pod.
const (
	// PodDirectory has the curve, and the processes' files in a folder for each NEM.
	PodDirectory = "/etc/emane"
	// PodDevice of the channels.
	PodDevice = "eth0"
)

// InPod returns how a member's process runs in its network's pod. Its control port depends on the member's
// rank by NEM id, so it follows from the network.
func InPod(network *v1alpha1.RadioNetwork, nem int32) Process {
	h := fnv.New32a()
	_, _ = h.Write([]byte(network.UID)) // never fails
	sum := h.Sum32()
	// Each network has its own group, of those for use within an organisation (RFC 2365).
	group := netip.AddrFrom4([4]byte{239, 192 | byte(sum>>16&3), byte(sum >> 8), byte(sum)})
	rank := 0
	for i := range network.Spec.Members {
		if network.Spec.Members[i].NEM < nem {
			rank++
		}
	}
	return Process{Directory: PodDirectory, Device: PodDevice, HostOnly: true, Interface: Interface(nem), Raw: true,
		OTAGroup: netip.AddrPortFrom(group, DefaultOTAGroup.Port()), EventGroup: netip.AddrPortFrom(group, DefaultEventGroup.Port()),
		Control: netip.AddrPortFrom(DefaultControl.Addr(), DefaultControl.Port()+uint16(rank))} //nolint:gosec // files of more members than ports do not fit a ConfigMap
}

// Interface returns the name of a member's radio in an EMANE pod: the other end of the veth in the member's
// pod.
func Interface(nem int32) string { return "nem" + strconv.Itoa(int(nem)) }

// File of an EMANE process.
type File struct {
	Name string
	Text []byte
	// Shared files are the same for all processes of a network, and lie in Directory, whose path other files name.
	Shared bool
}

// Platform is the name of the file with which an EMANE process is started, PCR that of the curve in
// Directory.
const (
	Platform = "platform.xml"
	PCR      = "pcr.xml"
)

// Render makes the files of one member's EMANE process. Each NEM has its own process, as EMANE's guide
// advises.
func Render(spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member, process Process) ([]File, error) {
	if err := Check(spec).ToAggregate(); err != nil {
		return nil, err
	}
	process = process.withDefaults()
	address, err := netip.ParsePrefix(member.Address)
	if err != nil || !address.Addr().Is4() {
		return nil, fmt.Errorf("members: address %q of %s: want an IPv4 address with its prefix length", member.Address, member.Node)
	}
	m := modelOf(&spec.Waveform)
	files := []File{
		{Name: Platform, Text: process.platform(int(member.NEM), address, hasMasks(&spec.Waveform))},
		{Name: "nem.xml", Text: process.nem(&m)},
		{Name: "transport.xml", Text: process.component("transport", process.transportLibrary(), m.transport(), nil)},
	}
	for _, layer := range slices.Backward(m.layers()) {
		files = append(files, process.layer(spec, member, &m, layer))
	}
	pcr, err := process.pcr(&spec.Waveform)
	if err != nil {
		return nil, err
	}
	if spec.Waveform.TDMA != nil {
		if _, err := Schedule(spec); err != nil { // it is sent as an event, but must be valid at the start
			return nil, err
		}
	}
	if pcr != nil {
		files = append(files, File{Name: PCR, Text: pcr, Shared: true})
	}
	if process.Antennas != nil {
		files = append(files, process.Antennas.files(&process)...)
	}
	if hasMasks(&spec.Waveform) {
		masks, err := maskFile(spec.Waveform.EMANE.SpectralMasks)
		if err != nil {
			return nil, err
		}
		files = append(files, masks)
	}
	return files, nil
}

// layer returns the file of one layer of a member's radio.
func (p *Process) layer(spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member, m *model, layer v1alpha1.EMANELayer) File {
	library, own := m.library, []parameter(nil)
	switch {
	case layer == m.layer:
		own = m.own(p, &spec.Waveform)
	case m.phyLibrary != "":
		library = m.phyLibrary
	default:
		physical := phyOf(spec, member)
		library, own = "", phyParameters(spec, &physical, p.Antennas.parameters(int(member.NEM), physical.gainDBi))
	}
	single, lists := withRaw(own, rawOf(&spec.Waveform, member), layer)
	return File{Name: string(layer) + ".xml", Text: p.component(string(layer), library, single, lists)}
}

func (p Process) withDefaults() Process {
	p.DTDs = cmp.Or(p.DTDs, DefaultDTDs)
	p.OTAGroup = cmp.Or(p.OTAGroup, DefaultOTAGroup)
	p.EventGroup = cmp.Or(p.EventGroup, DefaultEventGroup)
	p.Control = cmp.Or(p.Control, DefaultControl)
	return p
}

// parameter of an EMANE component. field is that of a waveform's model which sets it, empty for what no field sets.
type parameter struct{ name, value, field string }

func (p *Process) platform(nem int, address netip.Prefix, masks bool) []byte {
	d := p.document("platform", "platform")
	ttl := "1"
	if p.HostOnly {
		ttl = "0"
	}
	d.parameters(1, []parameter{
		{name: "otamanagerchannelenable", value: "on"}, {name: "otamanagerdevice", value: p.Device}, {name: "otamanagergroup", value: p.OTAGroup.String()},
		{name: "otamanagerttl", value: ttl}, {name: "eventservicettl", value: ttl}, {name: "otamanagerloopback", value: onOff(p.HostOnly)},
		{name: "otamanagermtu", value: strconv.Itoa(p.OTAMTU)}, {name: "eventservicegroup", value: p.EventGroup.String()}, {name: "eventservicedevice", value: p.Device},
		{name: "controlportendpoint", value: p.Control.String()}})
	if p.Antennas != nil {
		d.parameters(1, []parameter{{name: "antennaprofilemanifesturi", value: p.uri(AntennaManifest)}})
	}
	if masks {
		d.parameters(1, []parameter{{name: "spectralmaskmanifesturi", value: p.uri(Masks)}})
	}
	d.line(1, "<nem id=\"%d\" definition=\"nem.xml\">", nem)
	d.line(2, "<transport definition=\"transport.xml\">")
	transport := []parameter{{name: "device", value: p.Interface}}
	if !p.Raw {
		transport = append(transport, parameter{name: "address", value: address.Addr().String()}, parameter{name: "mask", value: mask(address)})
	}
	d.parameters(3, transport)
	d.line(2, "</transport>")
	d.line(1, "</nem>")
	return d.end("platform")
}

func mask(p netip.Prefix) string {
	bits := ^uint32(0) << (32 - p.Bits())
	return netip.AddrFrom4([4]byte{byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits)}).String()
}

// nem lists the layers. EMANE calls a radio without a physical layer unstructured.
func (p *Process) nem(m *model) []byte {
	root := "nem"
	if m.layer == v1alpha1.EMANELayerShim {
		root = `nem type="unstructured"`
	}
	d := p.document("nem", root)
	for _, layer := range append([]v1alpha1.EMANELayer{"transport"}, m.layers()...) {
		d.line(1, "<%s definition=\"%s.xml\"/>", layer, layer)
	}
	return d.end("nem")
}

func (p *Process) transportLibrary() string {
	if p.Raw {
		return "transraw"
	}
	return "transvirtual"
}

// component returns the file of a layer. The physical layer is part of EMANE and has no library.
func (p *Process) component(kind, library string, parameters []parameter, lists []v1alpha1.EMANEParameter) []byte {
	root := kind
	if library != "" {
		root = fmt.Sprintf("%s library=%q", kind, library)
	}
	d := p.document(kind, root)
	d.parameters(1, parameters)
	for _, list := range lists {
		d.line(1, "<paramlist name=\"%s\">", escaped(list.Name))
		for _, value := range list.Values {
			d.line(2, "<item value=\"%s\"/>", escaped(value))
		}
		d.line(1, "</paramlist>")
	}
	return d.end(kind)
}

func phyParameters(spec *v1alpha1.RadioNetworkSpec, p *physical, gain []parameter) []parameter {
	w := &spec.Waveform
	parameters := []parameter{
		{"propagationmodel", propagationModel(p.Pathloss), "phy.pathloss"}, {"systemnoisefigure", decimal(p.noiseFigureDB), "phy.noiseFigure"},
		{"subid", strconv.Itoa(cmp.Or(int(p.SubID), 1)), "phy.subid"}, {"noisemode", noise(w.InterferenceCounted()), "interference"},
		// Tables that are not read would cost time for each frame. Adaptive rates need the received power.
		{"stats.receivepowertableenable", onOff(NewAdapter(w) != nil), ""}, {"stats.observedpowertableenable", "off", ""}}
	if spec.FadingSelections {
		parameters = append(parameters, parameter{fadingModel, fadingByEvent, ""})
	}
	if modelOf(w).transponders {
		return append(parameters, parameter{"compatibilitymode", "2", "model"})
	}
	parameters = slices.Concat(gain, parameters, []parameter{{"bandwidth", integer(p.Bandwidth.Hertz()), "phy.bandwidth"}, {"txpower", decimal(p.powerDBm), "phy.transmitPower"}})
	if w.TDMA != nil {
		return parameters
	}
	frequency := integer(p.Frequency.Hertz())
	return append(parameters, parameter{"frequency", frequency, "phy.frequency"}, parameter{"frequencyofinterest", frequency, "phy.frequency"})
}

func propagationModel(p v1alpha1.PathlossSource) string {
	switch p {
	case v1alpha1.PathlossFreeSpace:
		return "freespace"
	case v1alpha1.PathlossTwoRay:
		return "2ray"
	default:
		return "precomputed"
	}
}

func noise(i v1alpha1.Interference) string {
	switch i {
	case v1alpha1.InterferenceAll:
		return "all"
	case v1alpha1.InterferenceOutOfBand:
		return "outofband"
	default:
		return "none"
	}
}

func (p *Process) rfpipe(w *v1alpha1.WaveformSpec) []parameter {
	return []parameter{
		{"datarate", integer(cmp.Or(w.RFPipe.Rate, v1alpha1.DefaultRate).BitsPerSecond()), "rate"}, {"delay", decimal(w.RFPipe.Delay.Std().Seconds()), "delay"},
		{"jitter", decimal(w.RFPipe.Jitter.Std().Seconds()), "jitter"}, {"enablepromiscuousmode", "off", ""}, {"flowcontrolenable", "off", ""},
		{"pcrcurveuri", p.pcrURI(), "pcr"}}
}

func (p *Process) tdma(w *v1alpha1.WaveformSpec) []parameter {
	q := &w.TDMA.Queue
	return []parameter{
		{"enablepromiscuousmode", "off", ""}, {"flowcontrolenable", "off", ""},
		{"queue.aggregationenable", onByDefault(q.Aggregation), "queue.aggregation"},
		{"queue.aggregationslotthreshold", decimal(100 * cmp.Or(q.AggregationThreshold, "90%").Fraction()), "queue.aggregationThreshold"},
		{"queue.depth", strconv.Itoa(cmp.Or(int(q.Depth), 256)), "queue.depth"},
		{"queue.fragmentationenable", onByDefault(q.Fragmentation), "queue.fragmentation"}, {"queue.strictdequeueenable", onOff(q.StrictDequeue), "queue.strictDequeue"},
		{"pcrcurveuri", p.pcrURI(), "pcr"}}
}

func (p *Process) pcrURI() string { return p.uri(PCR) }

func onByDefault(b *bool) string { return onOff(b == nil || *b) }

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// decimal and integer write numbers without exponents, which EMANE does not accept.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func integer(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// document that is being written.
type document struct{ bytes.Buffer }

// document begins a document of a kind, which names its document type definition, with a root element.
func (p *Process) document(kind, root string) *document { return p.begin(kind, kind, root) }

// documentBy begins a document whose document type definition has another name than its root element.
func (p *Process) documentBy(root, definition string) *document {
	return p.begin(root, definition, root)
}

func (p *Process) begin(kind, definition, root string) *document {
	d := &document{}
	d.line(0, `<?xml version="1.0" encoding="UTF-8"?>`)
	d.line(0, "%s", p.doctype(kind, definition))
	d.line(0, "<%s>", root)
	return d
}

func (p *Process) doctype(root, definition string) string {
	return fmt.Sprintf("<!DOCTYPE %s SYSTEM \"file://%s\">", root, escaped(path.Join(p.DTDs, definition+".dtd")))
}

func (d *document) line(depth int, format string, values ...any) {
	for range depth {
		d.WriteString("  ")
	}
	fmt.Fprintf(d, format+"\n", values...)
}

func (d *document) parameters(depth int, all []parameter) {
	for _, p := range all {
		d.line(depth, "<param name=\"%s\" value=\"%s\"/>", p.name, escaped(p.value))
	}
}

func (d *document) end(root string) []byte {
	d.line(0, "</%s>", root)
	return d.Bytes()
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // never fails on a buffer
	return b.String()
}
