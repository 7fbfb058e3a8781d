package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/streams"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	nodeCount   = 10
	networkName = "radio"
	appName     = "bft"
)

// netCase is a network and the messages that every node sends over it.
type netCase struct {
	name     string
	waveform v1alpha1.WaveformSpec
	protocol string
	// pattern of the messages that a node sends.
	pattern string
}

// allCases draw losses and delays by a frame's number, not by its time. Runs of one seed then differ by
// lateness alone.
var allCases = []*netCase{
	{"link", v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Rate: ptr.To(v1alpha1.DataRate("19.2kbit")), Delay: "20ms", Loss: "5%", Limit: 1000}},
		"mqtt-udp", "POISSON [3 150]"},
	{"saturated", v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Rate: ptr.To(v1alpha1.DataRate("9.6kbit")), Delay: "20ms", Loss: "0%", Limit: 10}},
		"mqtt-udp", "POISSON [6 150]"},
	{"rfpipe", v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{PHY: physical, Rate: "64kbit", Delay: "20ms", Jitter: "10ms", QueueDepth: 255, PCR: completion}},
		"mqtt-udp", "POISSON [3 150]"},
	{"tdma", v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{PHY: physical, Rate: "150kbit", Structure: v1alpha1.TDMAStructure{Frames: 1, SlotDuration: "20ms", SlotOverhead: "0ms"}}},
		"mqtt-udp", "POISSON [3 150]"},
}

// tcpCases are links with the same load, with messages of one segment each.
var tcpCases = []*netCase{
	{"tcp 9.8 kbit", v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Rate: ptr.To(v1alpha1.DataRate("9.8kbit")), Delay: "100ms", Loss: "0%", Limit: 1000}},
		"mqtt", ""},
	{"tcp 98 kbit", v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Rate: ptr.To(v1alpha1.DataRate("98kbit")), Delay: "100ms", Loss: "0%", Limit: 1000}},
		"mqtt", ""},
}

const (
	// tcpBytes of a message over TCP, and tcpShare of the link that a node's messages take.
	tcpBytes, tcpShare = 400, 0.5
)

// overTCP reports whether messages go to the first node, instead of from all to all.
func (c *netCase) overTCP() bool { return c.protocol == "mqtt" }

// stream of messages with exponential gaps.
func (c *netCase) stream(i int, seed int64) (messages []trafficconfig.Message) {
	random := rand.New(rand.NewPCG(uint64(seed), uint64(i))) //nolint:gosec // no secret
	gap := 8 * tcpBytes / tcpShare / c.waveform.Link.Rate.BitsPerSecond()
	for at := gap * random.ExpFloat64(); at < duration.Seconds(); at += gap * random.ExpFloat64() {
		messages = append(messages, trafficconfig.Message{AtSeconds: at, Topic: topic(i), Bytes: tcpBytes})
	}
	return messages
}

func topic(i int) string { return "/NOR/" + nodeName(i) }

var physical = v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "1MHz", TransmitPower: "0dBm", AntennaGain: "0dBi", NoiseFigure: "4dB",
	Pathloss: v1alpha1.PathlossFreeSpace, SubID: 1}

// completion of frames is likelier the nearer the nodes are.
const completion = `<pcr><table pktsize="0"><row sinr="20" por="0"/><row sinr="60" por="100"/></table></pcr>`

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

func address(i int) string { return fmt.Sprintf("198.18.9.%d", i+1) }

// radio is the network as the operator gives it to radiod.
func (c *netCase) radio(seed int64) *v1alpha1.RadioNetwork {
	n := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Name: c.name, UID: "network"}}
	n.Spec = v1alpha1.RadioNetworkSpec{Experiment: v1alpha1.ExperimentReference{Namespace: "team", Name: c.name, UID: "run"}, Network: networkName, MTU: 1500,
		Seed: seed, Waveform: c.waveform}
	for i := range nodeCount {
		n.Spec.Members = append(n.Spec.Members, v1alpha1.Member{Node: nodeName(i), Group: "all", NEM: int32(i + 1), MAC: fmt.Sprintf("02:02:00:00:00:%02x", i+1),
			Address: address(i) + "/24", Interface: networkName, PodUID: types.UID(nodeName(i)), Primary: true,
			Position: &v1alpha1.Position{Latitude: v1alpha1.Degrees(fmt.Sprintf("%.4f", 58+0.001*float64(i))), Longitude: "8"}})
	}
	return n
}

// client is a node's instance: it sends, and receives what the others send. Over TCP only the first one
// receives.
func (c *netCase) client(i int, seed int64) trafficconfig.Config {
	config := trafficconfig.Config{Instance: nodeName(i) + "/" + appName, Protocol: c.protocol, Country: "NOR", Unit: "NOR-UNIT001",
		Entity: fmt.Sprintf("NOR-S%03d", i+1), Seed: seed*nodeCount + int64(i)}
	config.Subscribe = &trafficconfig.Subscribe{Topics: []string{"#"}}
	if !c.overTCP() {
		config.Broadcast, config.Interface = "198.18.9.255:1883", networkName
		config.Publish = &trafficconfig.Publish{Topic: topic(i), Pattern: fmt.Sprintf("0.0 ON 1 %s\n%v OFF 1", c.pattern, duration.Seconds())}
		return config
	}
	config.Broker = address(0) + ":1883"
	if i > 0 {
		config.Publish, config.Subscribe = &trafficconfig.Publish{Messages: c.stream(i, seed)}, nil
	}
	return config
}

// plan is the run as the archive has it.
func (c *netCase) plan(seed int64, t0 time.Time) runapi.RunRecord {
	app := v1alpha1.App{Name: appName, Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.Protocol(c.protocol)},
		Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.Protocol(c.protocol)}}
	network := v1alpha1.Network{Name: networkName, Subnet: "198.18.9.0/24", Link: c.waveform.Link, RFPipe: c.waveform.RFPipe, TDMA: c.waveform.TDMA}
	p := runapi.Plan{Namespace: "team", Name: c.name, UID: "run", T0: &t0, Phase: v1alpha1.PhaseAnalysing, MeasureStartNanoseconds: ptr.To[int64](0),
		MeasureEndNanoseconds: ptr.To(int64(*duration + drain)), Spec: v1alpha1.ExperimentSpec{Duration: v1alpha1.Duration(duration.String()), Seed: seed,
			Networks: []v1alpha1.Network{network}, Apps: []v1alpha1.App{app}}}
	var clients []streams.Client
	for i := range nodeCount {
		name, config := nodeName(i)+"/"+appName, c.client(i, seed)
		planned := runapi.PlannedApp{Name: appName, Kind: "traffic", Instances: []string{name}, Protocol: c.protocol,
			Publishes: config.Publish != nil, Subscribes: config.Subscribe != nil}
		client := streams.Client{Name: name, Protocol: c.protocol}
		if config.Publish != nil {
			client.Topics = []string{topic(i)}
		}
		if config.Subscribe != nil {
			client.Filters = config.Subscribe.Topics
		}
		clients = append(clients, client)
		p.Nodes = append(p.Nodes, runapi.PlannedNode{Name: nodeName(i), Group: "all", NEM: int32(i + 1), PodUID: nodeName(i), Pod: nodeName(i),
			Addresses: map[string]string{networkName: address(i)}, Apps: []runapi.PlannedApp{planned}})
	}
	p.Streams = streams.Table(clients, nil)
	return runapi.RunRecord{SchemaVersion: runapi.SchemaVersion, Revision: 1, Plan: p}
}
