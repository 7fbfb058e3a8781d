//go:build long

package routing_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radio/virtual"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	vehicles     = 24
	companyNoise = -112.02 // dBm, of 250 kHz and a noise figure of 8 dB
	antennas     = -11     // dB, the gains of both antennas
	linkDB       = 20      // SINR of the longest links that the terrain counts
	headers      = 42      // of Ethernet, IPv4 and UDP
	datagram     = 960
	dscpAt       = 15 // in a frame
	routingDSCP  = 48 // CS6
	converged    = 40 // seconds before T0
	firstMessage = 60
	lastMessage  = 1260
	messageEvery = 10
	// The kernel's defaults: three requests, a second apart; an answer counts for half a minute.
	arpTries, arpFresh, arpDelay = 3, 30 * time.Second, 5 * time.Second
)

// The kinds of frames, in the first byte behind the headers.
const (
	routingFrame = iota
	dataFrame
	arpRequest
	arpReply
)

// TestWhereTheMessagesOfACompanyGetLost sends datagrams of E2's size, each once, over E2's radio and OLSRv2 in virtual time.
// It prints why they get lost: by the movement of either form, and by the transmit power of either form.
func TestWhereTheMessagesOfACompanyGetLost(t *testing.T) {
	for _, form := range []struct {
		movement string
		power    float64 // dBm
	}{{"anglova", 40}, {"anglova", 37}, {"modified", 40}, {"modified", 37}} {
		t.Run(fmt.Sprintf("%s at %g dBm", form.movement, form.power), func(t *testing.T) {
			c := newCompany(t, "../../scenarios/e2/mosquitto-qos0-"+form.movement+".yaml", form.power)
			for c.seconds() < lastMessage+30 {
				c.step(t)
			}
			if share := c.tell(t); share < 0.65 {
				t.Errorf("%.2f of the messages arrive; want two thirds", share)
			}
		})
	}
}

// tell prints what became of the messages, and returns the share of those that arrived.
func (c *company) tell(t *testing.T) float64 {
	t.Helper()
	fates := map[string]int{}
	for _, m := range c.messages {
		if m.fate == "" {
			m.fate = airFate(m.sinr)
		}
		fates[m.fate]++
	}
	for _, fate := range slices.Sorted(maps.Keys(fates)) {
		t.Logf("%5.1f %%  %s", 100*float64(fates[fate])/float64(len(c.messages)), fate)
	}
	t.Logf("%.1f %% of the time a vehicle has a way of links of %d dB or more", 100*float64(c.ways)/float64(c.looks), linkDB)
	return float64(fates[arrived]) / float64(len(c.messages))
}

const arrived = "arrive"

func airFate(sinr float64) string {
	if sinr < linkDB {
		return "lost on a link that is longer than the terrain counts"
	}
	return "lost on a link that the terrain counts"
}

// message is a datagram. sinr is that of the last hop it took.
type message struct {
	fate string
	sinr float64
}

// company is the network with its nodes. It is the model's environment.
type company struct {
	*virtual.Network
	power    float64 // dBm
	cursor   *scenario.Cursor
	begin    int64
	second   int
	version  uint64
	nodes    []*vehicle // by NEM id - 1
	messages []message
	inbox    []func()
	// looks at vehicles, and ways over links of linkDB that they had.
	looks, ways int
}

// vehicle is one node: router, kernel's routes and ARP table.
type vehicle struct {
	*company
	nem    int
	router olsr.Router
	next   time.Time
	routes map[int]int // next hop by destination
	arp    map[int]*neighbour
	due    float64
}

// neighbour is an entry of the ARP table.
type neighbour struct {
	resolved  bool
	confirmed int64
	tries     int
	retry     int64
	waiting   [][]byte
}

func (c *company) seconds() float64 { return float64(c.Now-c.begin)/1e9 - converged }

func (c *company) clock() time.Time { return time.Unix(0, c.Now) }

// Pathloss, Jamming and Version implement phy.Versioned.
func (c *company) Pathloss(from, to *radio.Port, _ int64) (float64, bool) {
	return c.cursor.Pathloss(from.NEM-1, to.NEM-1)
}

func (c *company) Jamming(*radio.Port, int64, float64, float64) float64 { return 0 }

func (c *company) Version(int64) uint64 { return c.version }

func (c *company) sinr(from, to int) float64 {
	loss, known := c.cursor.Pathloss(from-1, to-1)
	if !known {
		return -companyNoise
	}
	return c.power + antennas - loss - companyNoise
}

func newCompany(t *testing.T, file string, power float64) *company {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s v1alpha1.Scenario
	var e v1alpha1.Experiment
	movement, experiment, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(movement), &s); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(experiment), &e); err != nil {
		t.Fatal(err)
	}
	c := &company{second: -1, power: power, cursor: cursorOf(t, s.Spec)}
	c.Network = virtual.NewOf(vehicles, tdma.New(c.radioOf(t, e.Spec.Networks[0].TDMA)))
	c.begin = c.Now
	c.Arrived = func(nem int, a virtual.Arrival, data []byte) {
		frame := bytes.Clone(data)
		c.inbox = append(c.inbox, func() { c.nodes[nem-1].receive(a.From, frame) })
	}
	for nem := 1; nem <= vehicles; nem++ {
		c.nodes = append(c.nodes, c.vehicle(t, nem))
	}
	return c
}

func cursorOf(t *testing.T, spec v1alpha1.ScenarioSpec) *scenario.Cursor {
	t.Helper()
	var content bytes.Buffer
	if _, err := compile.Compile(context.Background(), spec, nil, &content); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Open(bytes.NewReader(content.Bytes()), int64(content.Len()))
	if err != nil {
		t.Fatal(err)
	}
	cursor := s.NewCursor()
	if err := cursor.Seek(0); err != nil {
		t.Fatal(err)
	}
	return cursor
}

// radioOf has the file's curve and rates.
func (c *company) radioOf(t *testing.T, of *v1alpha1.TDMAModel) tdma.Config {
	t.Helper()
	curve, err := phy.ParsePCR([]byte(of.PCR))
	if err != nil {
		t.Fatal(err)
	}
	var nems []int
	for nem := 1; nem <= vehicles; nem++ {
		nems = append(nems, nem)
	}
	schedule, err := tdma.Generate(tdma.Structure{Frames: 8, Slots: 24, SlotDuration: 5 * time.Millisecond, SlotOverhead: 3 * time.Microsecond, BandwidthHertz: 250_000}, nems, 1_000_000, 300_000_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rates []tdma.Rate
	for i, rate := range []uint64{1_000_000, 500_000, 380_000} {
		var sinr float64
		if _, err := fmt.Sscanf(string(of.AdaptiveRates[i].SINR), "%gdB", &sinr); err != nil {
			t.Fatal(err)
		}
		rates = append(rates, tdma.Rate{BitsPerSecond: rate, SINRDB: sinr})
	}
	return tdma.Config{Seed: 1, Environment: c, PCR: curve, Schedule: schedule, AdaptiveRates: rates, Queue: tdma.DefaultQueue(), EpochOffset: func() int64 { return 0 },
		Radio: func(*radio.Port) phy.Radio {
			return phy.Radio{FrequencyHertz: 300e6, BandwidthHertz: 250e3, TransmitPowerDBm: c.power, AntennaGainDBi: -5.5, NoiseFigureDB: 8, Transmit: true}
		}}
}

func address(nem int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 12, byte(nem)}) }

func (c *company) vehicle(t *testing.T, nem int) *vehicle {
	t.Helper()
	v := &vehicle{company: c, nem: nem, routes: map[int]int{}, arp: map[int]*neighbour{}, due: firstMessage + messageEvery*float64(nem)/vehicles}
	config := olsr.Config{Interfaces: []olsr.Interface{{Address: address(nem), MTU: 1472}}, Seed: int64(nem),
		Hello: 2 * time.Second, HelloValidity: 20 * time.Second, TC: 8 * time.Second, TCValidity: 80 * time.Second}
	router, err := olsr.New(config, func(_ int, packet []byte) {
		content := binary.BigEndian.AppendUint16([]byte{routingFrame}, uint16(len(packet)))
		v.send(virtual.Everybody, headers+len(packet), append(content, packet...))
	})
	if err != nil {
		t.Fatal(err)
	}
	v.router = router
	return v
}

// step lets five milliseconds pass.
func (c *company) step(t *testing.T) {
	t.Helper()
	if second := int(max(c.seconds(), 0)); second != c.second {
		c.second, c.version = second, c.version+1
		if err := c.cursor.Seek(time.Duration(second) * time.Second); err != nil {
			t.Fatal(err)
		}
		if second >= firstMessage && second < lastMessage {
			c.look()
		}
	}
	for _, v := range c.nodes {
		v.act()
	}
	c.Pass(5 * time.Millisecond)
	for len(c.inbox) > 0 {
		receive := c.inbox[0]
		c.inbox = c.inbox[1:]
		receive()
	}
}

// look counts the vehicles that have a way to the first one.
func (c *company) look() {
	seen, front := map[int]bool{1: true}, []int{1}
	for len(front) > 0 {
		at := front[0]
		front = front[1:]
		for nem := 1; nem <= vehicles; nem++ {
			if !seen[nem] && c.sinr(nem, at) >= linkDB {
				seen[nem] = true
				front = append(front, nem)
			}
		}
	}
	c.looks, c.ways = c.looks+vehicles-1, c.ways+len(seen)-1
}

// act runs the router, retries ARP, and sends the next message, each at its time.
func (v *vehicle) act() {
	if !v.clock().Before(v.next) {
		v.route()
	}
	for via, n := range v.arp {
		v.resolve(via, n)
	}
	if v.nem == 1 || v.seconds() < v.due || v.due >= lastMessage {
		return
	}
	v.due += messageEvery
	v.messages = append(v.messages, message{})
	v.forward(binary.BigEndian.AppendUint32([]byte{dataFrame}, uint32(len(v.messages)-1)))
}

// route runs the router and takes its routes.
func (v *vehicle) route() {
	generation := v.router.Generation()
	v.next = v.router.Tick(v.clock())
	if v.router.Generation() == generation {
		return
	}
	clear(v.routes)
	for _, r := range v.router.Routes() {
		v.routes[int(r.Destination.Addr().As4()[3])] = int(r.NextHop.As4()[3])
	}
}

func (v *vehicle) send(to radio.MAC, length int, content []byte) {
	frame := v.Frame(v.nem, to, max(length, headers+len(content)))
	copy(frame[headers:], content)
	if content[0] == routingFrame {
		frame[dscpAt] = routingDSCP << 2
	}
	v.SendFrame(v.nem, frame)
}

func (v *vehicle) receive(from int, frame []byte) {
	content := frame[headers:]
	switch content[0] {
	case routingFrame:
		_ = v.router.Receive(v.clock(), 0, address(from), content[3:3+binary.BigEndian.Uint16(content[1:])])
		v.route()
	case dataFrame:
		if v.nem == 1 {
			v.messages[binary.BigEndian.Uint32(content[1:])].fate = arrived
		} else {
			v.forward(content[:5])
		}
	case arpRequest:
		if int(content[1]) == v.nem {
			v.learn(from, false)
			v.send(virtual.Address(from), 60, []byte{arpReply})
		}
	case arpReply:
		v.learn(from, true)
	}
}

// forward sends a datagram towards the first vehicle.
func (v *vehicle) forward(content []byte) {
	m := &v.messages[binary.BigEndian.Uint32(content[1:])]
	via, known := v.routes[1]
	if !known {
		m.fate = "no route"
		return
	}
	m.sinr = v.sinr(v.nem, via)
	n := v.arp[via]
	if n == nil {
		n = &neighbour{}
		v.arp[via] = n
	}
	switch {
	case !n.resolved:
		n.waiting = append(n.waiting, content)
		v.resolve(via, n)
		return
	case n.tries == 0 && v.Now-n.confirmed > int64(arpFresh):
		n.tries, n.retry = 1, v.Now+int64(arpDelay)
	}
	v.send(virtual.Address(via), datagram, content)
}

// resolve asks for an address that is not known, or no longer sure.
func (v *vehicle) resolve(via int, n *neighbour) {
	if n.resolved && n.tries == 0 || v.Now < n.retry {
		return
	}
	if n.tries > arpTries {
		for _, content := range n.waiting {
			v.messages[binary.BigEndian.Uint32(content[1:])].fate = "no answer to ARP"
		}
		delete(v.arp, via)
		return
	}
	to := virtual.Everybody
	if n.resolved {
		to = virtual.Address(via)
	}
	v.send(to, 60, []byte{arpRequest, byte(via)})
	n.tries, n.retry = max(n.tries, 1)+1, v.Now+int64(time.Second)
}

// learn an address, confirmed if its owner answered.
func (v *vehicle) learn(from int, confirmed bool) {
	n := v.arp[from]
	if n == nil {
		n = &neighbour{}
		v.arp[from] = n
	}
	if confirmed {
		n.tries, n.confirmed = 0, v.Now
	} else if !n.resolved {
		n.tries, n.confirmed = 0, v.Now-int64(arpFresh)
	}
	n.resolved = true
	for _, content := range n.waiting {
		v.send(virtual.Address(from), datagram, content)
	}
	n.waiting = nil
}
