package phy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vignette.dev/vignette/internal/radio"
)

// outcomes are the outcomes of broadcasts: who received which, and what each missed.
type outcomes struct {
	received []string
	missed   map[string]uint64
}

func (f *outcomes) miss(p *radio.Port, reason radio.Reason, transmissions uint64) {
	if transmissions > 0 {
		f.missed[fmt.Sprint(p.Name, " ", reason)] += transmissions
	}
}

func (f *outcomes) receive(t *Transmission, p *radio.Port) {
	f.received = append(f.received, fmt.Sprint(t.Source.Name, " ", t.Index, " ", p.Name))
}

// each has a transmission end at each of its neighbours by itself.
func (c *changingWorld) each(t *Transmission) {
	all := c.medium.Neighbours(t.End, t.Source, t.PowerDBm)
	for i := range all {
		if r := c.medium.Receive(t.End, t, &all[i], all[i].Radio().FrequencyHertz, true); r.Received {
			c.outcomes.receive(t, all[i].Port)
		} else {
			c.outcomes.miss(all[i].Port, r.Reason, 1)
		}
	}
}

func (c *changingWorld) together(t *Transmission) {
	for _, p := range c.medium.Broadcast(t.End, t, nil) {
		c.outcomes.receive(t, p)
	}
}

// changingWorld is a world with radios that change at random. Two with the same seed change alike.
type changingWorld struct {
	random   *rand.Rand
	world    *world
	radios   map[int]*Radio
	medium   *Medium
	config   Config
	all      []*radio.Port
	outcomes outcomes
}

const changingNodes = 12

// batched is a world that is asked for many at once.
type batched struct{ *world }

func (b batched) PathlossToAll(from int, to []int, _ int64, dB []float64) {
	for i, nem := range to {
		loss, known := b.loss[[2]int{from, nem}]
		if dB[i] = loss; !known {
			dB[i] = math.NaN()
		}
	}
}

func newChanging(seed uint64, environment func(*world) Environment) *changingWorld {
	c := &changingWorld{random: rand.New(rand.NewPCG(seed, 1)), world: &world{}, radios: map[int]*Radio{}, all: portsOf(changingNodes),
		outcomes: outcomes{missed: map[string]uint64{}}}
	sized, err := ParsePCR([]byte(`<pcr><table pktsize="500"><row sinr="5" por="0"/><row sinr="8" por="60"/><row sinr="12" por="100"/></table></pcr>`))
	if err != nil {
		panic(err)
	}
	c.config = Config{Seed: int64(seed), Environment: environment(c.world), Missed: c.outcomes.miss, PCR: []*Curve{nil, sized, linearCurve}[c.random.IntN(3)],
		Interference: Interference(max(c.random.IntN(6)-3, 0)), HalfDuplex: c.random.IntN(4) == 0, Radio: func(p *radio.Port) Radio { return *c.radios[p.NEM] }}
	for _, p := range c.all {
		c.radios[p.NEM] = &Radio{}
		c.retune(p.NEM)
	}
	c.move()
	c.medium = NewMedium(c.config)
	c.medium.Members(c.all, radio.SetSlots(nil, c.all))
	return c
}

func (c *changingWorld) retune(nem int) {
	*c.radios[nem] = emaneRadio
	r := c.radios[nem]
	r.TransmitPowerDBm = float64(c.random.IntN(3) * 5)
	if c.random.IntN(8) == 0 {
		r.FrequencyHertz += 5e5
	}
	if c.random.IntN(8) == 0 {
		r.SubID = 2
	}
	r.BandwidthHertz *= float64(1 + c.random.IntN(2))
}

func (c *changingWorld) move() {
	c.world.version++
	c.world.loss = map[[2]int]float64{}
	for i := range changingNodes {
		for j := range changingNodes {
			if c.random.IntN(10) > 0 {
				c.world.loss[[2]int{i + 1, j + 1}] = 85 + 40*c.random.Float64()
			}
		}
	}
}

// change something now and then.
func (c *changingWorld) change() {
	switch c.random.IntN(40) {
	case 0, 1:
		c.move()
	case 2:
		c.retune(1 + c.random.IntN(changingNodes))
		c.medium.Configure(c.config)
	case 3:
		c.medium.Tally(c.random.IntN(5))
	case 4:
		c.medium.Neighbour(0, c.all[c.random.IntN(changingNodes)], c.all[c.random.IntN(changingNodes)], 20)
	case 5:
		members := slices.Clone(c.all)
		c.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		members = members[:changingNodes-c.random.IntN(3)]
		c.medium.Members(members, radio.SetSlots(c.medium.ports, members))
	}
}

// carry transmissions, two of which are on the air at a time, to where they end.
func (c *changingWorld) carry(transmissions int, end func(*Transmission)) {
	var before *Transmission
	for i := range int64(transmissions) {
		c.change()
		source := c.all[c.random.IntN(changingNodes)]
		power, size, rate := 0.0, 1+c.random.IntN(2000), 1e6
		if c.random.IntN(5) == 0 { // most transmissions of a sender are alike
			power, rate = float64(c.random.IntN(4)*3), 2e6
		}
		r := c.medium.Radio(source)
		if r == nil {
			continue
		}
		t := &Transmission{Source: source, Index: uint64(i), Start: i * 100e3, End: i*100e3 + 150e3, FrequencyHertz: r.FrequencyHertz,
			PowerDBm: r.TransmitPowerDBm + power, Bytes: size, RateBitsPerSecond: rate}
		c.medium.Begin(t)
		if before != nil {
			end(before)
		}
		before = t
	}
	c.medium.Tally(changingNodes)
	slices.Sort(c.outcomes.received) // who is certain to receive comes first
}

func TestABroadcastIsWhatEachNeighbourReceives(t *testing.T) {
	received, missed := 0, uint64(0)
	for seed := range uint64(80) {
		each := newChanging(seed, func(w *world) Environment { return w })
		together := newChanging(seed, func(w *world) Environment { return batched{w} })
		each.carry(300, each.each)
		together.carry(300, together.together)
		received += len(each.outcomes.received)
		for _, transmissions := range each.outcomes.missed {
			missed += transmissions
		}
		if !slices.Equal(each.outcomes.received, together.outcomes.received) {
			t.Fatalf("seed %d: %d received each, %d together", seed, len(each.outcomes.received), len(together.outcomes.received))
		}
		if got, want := fmt.Sprint(together.outcomes.missed), fmt.Sprint(each.outcomes.missed); got != want {
			t.Fatalf("seed %d: missed %s; want %s", seed, got, want)
		}
		for i, p := range each.all {
			if got, want := links(together, i), links(each, i); got != want {
				t.Fatalf("seed %d: %s has links\n%s; want\n%s", seed, p.Name, got, want)
			}
		}
		if got, want := together.medium.LinksHeard(), each.medium.LinksHeard(); got != want {
			t.Fatalf("seed %d: %d links heard; want %d", seed, got, want)
		}
	}
	if received < 10_000 || missed < 20_000 {
		t.Errorf("%d received and %d missed: this tests nothing", received, missed)
	}
}

// links of a port, by the names of those it heard.
func links(c *changingWorld, port int) (all string) {
	for _, l := range c.medium.AppendLinks(nil, c.all[port]) {
		all += fmt.Sprintf("%+v\n", l)
	}
	return all
}

func TestOnlySomeSendersAreTalliedAtATime(t *testing.T) {
	missed := uint64(0)
	config := Config{Environment: everywhere(5, 115), Missed: func(_ *radio.Port, _ radio.Reason, transmissions uint64) { missed += transmissions }}
	m, p := mediumOf(5, config)
	for i := range 9 {
		tr := send(m, p[i%3], uint64(i), int64(i)*100, int64(i)*100+50)
		if reached := m.Broadcast(tr.End, tr, nil); len(reached) != 0 {
			t.Fatalf("%d receive below their sensitivity", len(reached))
		}
	}
	if missed != 0 || m.Tally(2) || missed != 2*3*4 || !m.Tally(2) || missed != 3*3*4 {
		t.Errorf("%d were counted; want those of two senders, and then of all", missed)
	}
}
