package olsr_test

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/olsrtest"
	"vignette.dev/vignette/internal/olsr/rfc5444"
)

var standard = olsr.Config{Hello: 2 * time.Second, TC: 5 * time.Second}

// topologies that are tried.
func topologies() int {
	if testing.Short() {
		return 20
	}
	return 200
}

func TestRoutesAreShortestPathsOnRandomTopologies(t *testing.T) {
	olsrtest.RandomTopologies(t, topologies(), standard, olsr.New)
}

func BenchmarkOverhead(b *testing.B) {
	olsrtest.OverheadAtRest(b, olsr.Config{HelloValidity: 20 * time.Second, TC: 8 * time.Second, TCValidity: 80 * time.Second}, olsr.New)
}

func TestLinksThatAreThereOneWayAreNotUsed(t *testing.T) {
	olsrtest.AsymmetricLinks(t, standard, olsr.New)
}

func TestRoutesAreFoundInSpiteOfLoss(t *testing.T) {
	olsrtest.Loss(t, olsr.Config{HelloValidity: 20 * time.Second, TCValidity: 40 * time.Second}, olsr.New)
}

func TestRoutesFollowTheTopology(t *testing.T) { olsrtest.Changes(t, standard, olsr.New) }

func TestSequenceNumbersMayBeginAgain(t *testing.T) {
	olsrtest.Wrap(t, standard, olsr.New, func(r olsr.Router) { olsr.SetNumbers(r, 65530, 65533) })
}

func TestARestartWithASnapshotDisturbsNobody(t *testing.T) { olsrtest.Restart(t, standard, olsr.New) }

func TestARestartWithASnapshotKeepsEveryTopology(t *testing.T) {
	c := standard
	c.Topologies = []olsr.Topology{{Type: 224}, {Type: 225}}
	olsrtest.Restart(t, c, olsr.New)
}

func TestRoutesAreFoundAtTheLeastMTU(t *testing.T) { olsrtest.LeastMTU(t, 68-28, standard, olsr.New) }

func TestASilentNodeListens(t *testing.T) { olsrtest.Silence(t, standard, olsr.New) }

func TestSeveralInterfacesAreOneDomain(t *testing.T) {
	olsrtest.SeveralInterfaces(t, standard, olsr.New)
}

// read is olsrtest.Read of OLSRv2.
func read(packet []byte) (all []olsrtest.Message) {
	var p rfc5444.Packet
	if err := rfc5444.Split(packet, &p); err != nil {
		panic(err) // it is a router's own
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		all = append(all, olsrtest.Message{Hello: m.Type == 0, TC: m.Type == 1, Originator: m.Originator})
	}
	return all
}

func TestEachNetworkOfADomainHasItsOwnRates(t *testing.T) { olsrtest.Hybrid(t, olsr.New, read) }

func TestSilenceOnOneInterfaceLeavesTheOther(t *testing.T) {
	olsrtest.SilentInterface(t, olsr.New, read)
}
