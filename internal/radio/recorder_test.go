package radio_test

import (
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/rfpipe"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radio/virtual"
)

// epoch is the time since the Unix epoch at the time 0, in the middle of some slot.
const epoch = 1_700_000_000_123_456_789

const nodes = 6

// recording is a network that records who receives what.
type recording struct {
	*virtual.Network
	t     *testing.T
	begin int64
	sent  int
	by    map[int]*received // by NEM id
}

// received are the frames of one node: how many, a hash of all, and the first.
type received struct {
	count int
	hash  hash.Hash64
	first []string
}

func newRecording(t *testing.T, hosts int, model func(t *testing.T) radio.Model) *recording {
	var models []radio.Model
	for range hosts {
		models = append(models, model(t))
	}
	r := &recording{Network: virtual.New(1500, models...), t: t, by: map[int]*received{}}
	r.begin, r.Latency, r.Arrived = r.Now, 150*time.Microsecond, r.record
	for nem := 1; nem <= nodes; nem++ {
		r.by[nem] = &received{hash: fnv.New64a()}
		r.join(nem)
	}
	return r
}

func (r *recording) join(nem int) {
	group := []string{"red", "blue"}[nem%2]
	r.Join(nem, fmt.Sprint(group, "-", nem), group)
}

func (r *recording) record(nem int, a virtual.Arrival, data []byte) {
	b := r.by[nem]
	line := fmt.Sprintf("%13d ns  frame %d from %d, %d bytes", a.At-r.begin, a.Sequence, a.From, a.Length)
	b.count++
	_, _ = fmt.Fprintln(b.hash, line)
	_, _ = b.hash.Write(data)
	if len(b.first) < 4 {
		b.first = append(b.first, line)
	}
}

// send makes a node send a frame whose every byte matters.
func (r *recording) send(from int, to radio.MAC, dscp byte, length int) {
	data := r.Frame(from, to, length)
	r.sent++
	data[15] = dscp << 2
	for i := virtual.Shortest; i < len(data); i++ {
		data[i] = byte(i * r.sent)
	}
	r.SendFrame(from, data)
}

// load has nodes send frames at random times, to random receivers.
type load struct {
	frames    int
	gap       time.Duration // between frames on average
	longest   int           // bytes
	broadcast float64       // share of the frames
}

func (r *recording) carry(seed uint64, l load, halfway func(r *recording)) {
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range l.frames {
		from, to := 1+random.IntN(nodes), virtual.Everybody
		if random.Float64() >= l.broadcast {
			if to = virtual.Address(1 + random.IntN(nodes)); random.IntN(20) == 0 {
				to = virtual.Address(0x99)
			}
		}
		r.send(from, to, byte(random.IntN(64)), 50+random.IntN(l.longest-50))
		r.Pass(time.Duration(random.ExpFloat64() * float64(l.gap)))
		if i == l.frames/2 && halfway != nil {
			halfway(r)
		}
	}
	r.Pass(time.Minute)
}

// String is what the nodes received, and what was counted.
func (r *recording) String() string {
	var text strings.Builder
	for _, nem := range slices.Sorted(maps.Keys(r.by)) {
		b := r.by[nem]
		c := r.Counters(nem)
		fmt.Fprintf(&text, "node %d received %d frames, hash %016x\n", nem, b.count, b.hash.Sum64())
		for _, line := range b.first {
			fmt.Fprintln(&text, line)
		}
		fmt.Fprintf(&text, "  sent %d, copies %d, corrupted %d, released %d, in flight %d, delay %d ns, lateness %d ns, worst %d ns\n",
			c.FramesSent, c.Copies, c.Corrupted, c.Released, c.InFlight, c.Delay.Sum, c.Lateness.Sum, c.WorstLateness)
		c.Dropped(func(reason string, frames uint64) { fmt.Fprintf(&text, "  %s %d\n", reason, frames) })
	}
	return text.String()
}

// air has pathlosses by the nodes' NEM ids that change every second, and a jammer every third.
type air struct{ near, spread float64 }

func (a air) Pathloss(from, to *radio.Port, now int64) (dB float64, known bool) {
	if from.NEM == 1 && to.NEM == 5 {
		return 0, false
	}
	pair := uint64(from.NEM*to.NEM*7919) + uint64(from.NEM+to.NEM)*104729 + a.Version(now)*15485863
	return a.near + a.spread*float64(pair%1000)/1000, true
}

func (a air) Jamming(_ *radio.Port, now int64, _, _ float64) (milliwatts float64) {
	if a.Version(now)%3 == 0 {
		return 1e-11
	}
	return 0
}

func (a air) Version(now int64) uint64 { return uint64(now / 1e9) }

func radioOf(p *radio.Port) phy.Radio {
	return phy.Radio{FrequencyHertz: 300e6, BandwidthHertz: 1e6, TransmitPowerDBm: 1, AntennaGainDBi: 1, NoiseFigureDB: 4, SubID: 1, Transmit: true}
}

func curve(t *testing.T) *phy.Curve {
	c, err := phy.ParsePCR([]byte(`<pcr><table pktsize="0"><row sinr="0" por="0"/><row sinr="20" por="100"/></table></pcr>`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pipe(t *testing.T, change func(c *rfpipe.Config)) *rfpipe.Model {
	return rfpipe.New(pipeConfig(t, change))
}

func pipeConfig(t *testing.T, change func(c *rfpipe.Config)) rfpipe.Config {
	c := rfpipe.Config{Seed: 5, Radio: radioOf, Environment: air{80, 40}, PCR: curve(t),
		RateBitsPerSecond: func(p *radio.Port) float64 { return 100e3 * float64(1+p.NEM%3) }}
	change(&c)
	return c
}

func slotConfig(t *testing.T, change func(c *tdma.Config)) tdma.Config {
	c := tdma.Config{Seed: 5, Radio: radioOf, Environment: air{90, 40}, PCR: curve(t), Interference: phy.All, Queue: tdma.DefaultQueue(),
		Schedule:    schedule(t, `<slot index="0" nodes="1,4"/><slot index="1" nodes="2,5"/><slot index="2" nodes="3"/><slot index="3" nodes="6"/>`),
		EpochOffset: func() int64 { return epoch }}
	c.Queue.Depth = 20
	change(&c)
	return c
}

// schedule of four slots of 10 ms at 1 Mbit/s.
func schedule(t *testing.T, slots string) *tdma.Schedule {
	s, err := tdma.ParseSchedule([]byte(`<emane-tdma-schedule><structure frames="1" slots="4" slotoverhead="0" slotduration="10000" bandwidth="1M"/>
<multiframe frequency="2.4G" power="0" class="0" datarate="1M"><frame index="0">`+slots+`</frame></multiframe></emane-tdma-schedule>`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pairs have effects by the nodes' NEM ids, which change every second.
type pairs struct{}

func (pairs) Effect(from, to *radio.Port, now int64) (e link.Effect, known bool) {
	if from.NEM == 2 {
		return e, false
	}
	return link.Effect{Latency: time.Duration(from.NEM*to.NEM+int(now/1e9)%5) * time.Millisecond, Jitter: 2 * time.Millisecond, Loss: 0.1, Duplicate: 0.1,
		Unicast: 1e6, Broadcast: 500e3}, true
}

var busyLink = link.Parameters{RateBitsPerSecond: 200e3, Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Distribution: link.Normal,
	JitterCorrelation: 0.3, Loss: 0.05, LossCorrelation: 0.2, Duplicate: 0.1, Corrupt: 0.02, Limit: 30}

var rates = []tdma.Rate{{BitsPerSecond: 380e3}, {BitsPerSecond: 500e3, SINRDB: 6}, {BitsPerSecond: 1e6, SINRDB: 12}}

// recordings of each model by name.
var recordings = map[string]struct {
	hosts   int // 0 means one, and then the same on three
	model   func(t *testing.T) radio.Model
	load    load
	halfway func(r *recording)
	late    time.Duration
}{
	"link": {
		model: func(*testing.T) radio.Model { return link.New(link.Config{Seed: 5, Default: busyLink}) },
		load:  load{3000, 8 * time.Millisecond, 1500, 0.3},
	},
	"link-groups": {
		model: func(*testing.T) radio.Model {
			return link.New(link.Config{Seed: 5, Default: busyLink, Links: []link.Link{
				{From: "red", To: "blue", Parameters: link.Parameters{Delay: 90 * time.Millisecond, Jitter: 30 * time.Millisecond, Distribution: link.Pareto, Reorder: true}},
				{From: "blue-1", To: link.Everybody, Parameters: link.Parameters{RateBitsPerSecond: 1e6, LimitBytes: 9000,
					GilbertElliott: &link.GilbertElliott{GoodToBad: 0.05, BadToGood: 0.3, LossInBad: 0.8}}}}})
		},
		load: load{3000, 8 * time.Millisecond, 1500, 0.3},
		halfway: func(r *recording) {
			r.Configure(func(m radio.Model) {
				m.(*link.Model).Configure(link.Config{Seed: 5, Default: link.Parameters{Delay: 5 * time.Millisecond, RateBitsPerSecond: 2e6}, Links: []link.Link{
					{From: "red", To: "blue", Parameters: busyLink}}})
			})
		},
	},
	"link-effects": {
		model: func(*testing.T) radio.Model {
			return link.New(link.Config{Seed: 5, Default: busyLink, Effects: pairs{}})
		},
		load: load{2000, 8 * time.Millisecond, 1500, 0.5},
	},
	"link-members": {
		model: func(*testing.T) radio.Model { return link.New(link.Config{Seed: 5, Default: busyLink}) },
		load:  load{2000, 8 * time.Millisecond, 1600, 0.5}, // some longer than the MTU
		halfway: func(r *recording) {
			r.Leave(3)
			r.Pass(20 * time.Millisecond)
			r.join(3)
			due := r.Now + 100e6
			for _, h := range r.Hosts {
				h.Network.Schedule(due, func(now int64, _ radio.Model) (silent bool, next int64) {
					if now < due+1e9 {
						return true, due + 1e9
					}
					return false, 0
				})
			}
		},
	},
	"rfpipe": {
		model: func(t *testing.T) radio.Model { return pipe(t, func(*rfpipe.Config) {}) },
		load:  load{3000, 20 * time.Millisecond, 1500, 0.5},
	},
	"rfpipe-queue": {
		model: func(t *testing.T) radio.Model {
			return pipe(t, func(c *rfpipe.Config) {
				c.QueueDepth, c.Delay, c.Jitter = 5, 30*time.Millisecond, 50*time.Millisecond
			})
		},
		load: load{2000, 6 * time.Millisecond, 1500, 0.5},
		halfway: func(r *recording) {
			r.Configure(func(m radio.Model) {
				m.(*rfpipe.Model).Configure(pipeConfig(r.t, func(c *rfpipe.Config) {
					c.Radio = func(p *radio.Port) phy.Radio {
						is := radioOf(p)
						is.Transmit, is.TransmitPowerDBm = p.NEM != 2, 5
						return is
					}
				}))
			})
		},
	},
	"rfpipe-interference": {
		model: func(t *testing.T) radio.Model {
			return pipe(t, func(c *rfpipe.Config) { c.Interference = phy.All })
		},
		load: load{3000, 20 * time.Millisecond, 1500, 0.5},
	},
	"rfpipe-out-of-band": {
		model: func(t *testing.T) radio.Model {
			return pipe(t, func(c *rfpipe.Config) {
				c.Interference = phy.OutOfBand
				c.Radio = func(p *radio.Port) phy.Radio {
					is := radioOf(p)
					is.SubID = 1 + p.NEM%2
					is.FrequencyHertz += 300e3 * float64(p.NEM/5)
					return is
				}
			})
		},
		load: load{2000, 20 * time.Millisecond, 1500, 0.5},
	},
	"rfpipe-half-duplex": {
		model: func(t *testing.T) radio.Model {
			return pipe(t, func(c *rfpipe.Config) { c.Interference, c.HalfDuplex = phy.All, true })
		},
		load: load{2000, 20 * time.Millisecond, 1500, 0.5},
		halfway: func(r *recording) {
			r.Leave(2)
			r.Pass(100 * time.Millisecond)
			r.join(2)
		},
	},
	"tdma": {
		model: func(t *testing.T) radio.Model { return tdma.New(slotConfig(t, func(*tdma.Config) {})) },
		load:  load{3000, 12 * time.Millisecond, 1500, 0.5},
	},
	"tdma-classes": {
		model: func(t *testing.T) radio.Model {
			return tdma.New(slotConfig(t, func(c *tdma.Config) {
				c.Schedule = schedule(t, `<slot index="0" nodes="1"><tx destination="2"/></slot><slot index="1" nodes="1,4"/><slot index="2" nodes="2,6"><tx class="2"/></slot><slot index="3" nodes="3,5"/>`)
				c.Queue.StrictDequeue, c.Interference = true, phy.None
			}))
		},
		load: load{2000, 12 * time.Millisecond, 1500, 0.5},
	},
	"tdma-rates": {
		model: func(t *testing.T) radio.Model {
			return tdma.New(slotConfig(t, func(c *tdma.Config) { c.AdaptiveRates = rates }))
		},
		load: load{2000, 12 * time.Millisecond, 1500, 0.5},
		halfway: func(r *recording) {
			r.Configure(func(m radio.Model) {
				m.(*tdma.Model).Configure(r.Now, slotConfig(r.t, func(c *tdma.Config) {
					c.Schedule = schedule(r.t, `<slot index="0" nodes="1"/><slot index="1" nodes="2,4"/><slot index="2" nodes="3,5"/><slot index="3" nodes="6"/>`)
					c.AdaptiveRates = rates
				}))
			})
		},
	},
	"tdma-members": {
		model: func(t *testing.T) radio.Model { return tdma.New(slotConfig(t, func(*tdma.Config) {})) },
		load:  load{2000, 12 * time.Millisecond, 1500, 0.5},
		halfway: func(r *recording) {
			r.Leave(2)
			r.Pass(100 * time.Millisecond)
			r.join(2)
		},
	},
	"tdma-late": {
		model: func(t *testing.T) radio.Model {
			return tdma.New(slotConfig(t, func(c *tdma.Config) { c.Queue.Depth = 1 }))
		},
		load: load{1000, 25 * time.Millisecond, 1500, 0.5},
		late: 23 * time.Millisecond, hosts: 1,
	},
}

// The files were made by the engine before it was a state machine.
func TestTheSameFramesReachTheSameReceiversAtTheSameTimes(t *testing.T) {
	for name, c := range recordings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			for _, hosts := range []int{1, 3} {
				if c.hosts != 0 && c.hosts != hosts {
					continue
				}
				r := newRecording(t, hosts, c.model)
				r.Late = c.late
				r.carry(7, c.load, c.halfway)
				fmt.Fprintf(&text, "hosts: %d\n%s", hosts, r)
			}
			golden.Check(t, "recorded/"+name+".txt", text.String())
		})
	}
}
