package rfpipe_test

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/rfpipe"
)

// world is an environment with fixed pathlosses in dB, by NEM ids; others are unknown.
type world map[[2]int]float64

func (w world) Pathloss(from, to *radio.Port, _ int64) (dB float64, known bool) {
	dB, known = w[[2]int{from.NEM, to.NEM}]
	return dB, known
}

func (w world) Jamming(*radio.Port, int64, float64, float64) float64 { return 0 }

func (w world) Version(int64) uint64 { return 1 }

// everywhere is a world of one pathloss between all nodes.
func everywhere(nodes int, loss float64) world {
	w := world{}
	for i := range nodes {
		for j := range nodes {
			w[[2]int{i + 1, j + 1}] = loss
		}
	}
	return w
}

func emaneRadio(*radio.Port) phy.Radio {
	return phy.Radio{FrequencyHertz: 2347e6, BandwidthHertz: 1e6, NoiseFigureDB: 4, SubID: 1, Transmit: true}
}

func rate(bitsPerSecond float64) func(*radio.Port) float64 {
	return func(*radio.Port) float64 { return bitsPerSecond }
}

// pipe is the config of radios at a rate in a world, with EMANE's defaults.
func pipe(w world, bitsPerSecond float64) rfpipe.Config {
	return rfpipe.Config{Radio: emaneRadio, Environment: w, RateBitsPerSecond: rate(bitsPerSecond)}
}

const linearPCR = `<pcr><table pktsize="0"><row sinr="0" por="0"/><row sinr="20" por="100"/></table></pcr>`

func curve(t testing.TB, text string) *phy.Curve {
	t.Helper()
	c, err := phy.ParsePCR([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type bed struct{ *radiotest.Bed }

func newBed(t testing.TB, nodes int, config rfpipe.Config) *bed {
	t.Helper()
	return &bed{radiotest.NewBed(t, nodes, rfpipe.New(config))}
}

// configure changes the model as radiod does.
func (b *bed) configure(t *testing.T, config rfpipe.Config) {
	t.Helper()
	if err := b.Network.Configure(1500, false, func(m radio.Model) { m.(*rfpipe.Model).Configure(config) }); err != nil {
		t.Fatal(err)
	}
}

// drops of a node for a reason.
func (b *bed) drops(node int, reason radio.Reason) uint64 {
	return b.Network.Snapshot(false)[node].Drops[reason]
}

// send frames with numbers from first on, to another node or, below 0, to all.
func (b *bed) send(t testing.TB, from, to, first, frames, length int) {
	t.Helper()
	address := radiotest.Broadcast
	if to >= 0 {
		address = b.Nodes[to].MAC
	}
	for i := range frames {
		if err := b.Nodes[from].Send(b.Nodes[from].Frame(address, uint64(first+i), length)); err != nil {
			t.Fatal(err)
		}
	}
}

// settled waits until nothing is under way, and returns the numbers of the frames that a node has received.
func (b *bed) settled(t *testing.T, node int) (numbers []int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		under := 0
		for _, s := range b.Network.Snapshot(false) {
			under += s.InFlight
		}
		if under == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d frames still under way", under)
		}
	}
	arrived, err := b.Nodes[node].ReceiveAll(20 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range arrived {
		numbers = append(numbers, int(r.Sequence))
	}
	return numbers
}

func statistics(b *bed) (all []phy.PortStatistics) {
	b.Network.Do(func(_ *radio.Network, m radio.Model) { all = m.(*rfpipe.Model).Statistics() })
	return all
}
