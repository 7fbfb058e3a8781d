package rfpipe_test

import (
	"testing"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/rfpipe"
	"vignette.dev/vignette/internal/radio/virtual"
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

func newNetwork(t testing.TB, nodes int, config rfpipe.Config) *virtual.Network {
	t.Helper()
	n := virtual.NewOf(nodes, rfpipe.New(config))
	t.Cleanup(func() {
		if is := n.Unaccounted(); is != "" {
			t.Error(is)
		}
	})
	return n
}

// send makes a node send frames at once.
func send(n *virtual.Network, from int, to radio.MAC, frames, length int) {
	for range frames {
		n.Send(from, to, length)
	}
}

func configure(n *virtual.Network, config rfpipe.Config) {
	n.Configure(func(m radio.Model) { m.(*rfpipe.Model).Configure(config) })
}

func statistics(n *virtual.Network) []rfpipe.PortStatistics {
	return n.Hosts[0].Network.Model().(*rfpipe.Model).Statistics()
}
