package v1

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/olsrtest"
)

// e1 are the intervals of experiment E1.
var (
	e1       = olsr.Config{Hello: 2 * time.Second, HelloValidity: 20 * time.Second, TC: 8 * time.Second, TCValidity: 80 * time.Second}
	standard = olsr.Config{Hello: 2 * time.Second, TC: 5 * time.Second}
)

// topologies that are tried.
func topologies() int {
	if testing.Short() {
		return 20
	}
	return 200
}

func TestRoutesAreShortestPathsOnRandomTopologies(t *testing.T) {
	olsrtest.RandomTopologies(t, topologies(), standard, New)
}

func BenchmarkOverhead(b *testing.B) { olsrtest.OverheadAtRest(b, e1, New) }

func TestLinksThatAreThereOneWayAreNotUsed(t *testing.T) {
	olsrtest.AsymmetricLinks(t, standard, New)
}

func TestRoutesAreFoundInSpiteOfLoss(t *testing.T) { olsrtest.Loss(t, e1, New) }

func TestRoutesFollowTheTopology(t *testing.T) { olsrtest.Changes(t, standard, New) }

func TestSequenceNumbersMayBeginAgain(t *testing.T) {
	olsrtest.Wrap(t, standard, New, func(r olsr.Router) { r.(*router).Sequence, r.(*router).ANSN = 65530, 65533 })
}

func TestARestartWithASnapshotDisturbsNobody(t *testing.T) { olsrtest.Restart(t, standard, New) }

func TestRoutesAreFoundAtTheLeastMTU(t *testing.T) { olsrtest.LeastMTU(t, 68-28, standard, New) }

func TestASilentNodeListens(t *testing.T) { olsrtest.Silence(t, standard, New) }

func TestSeveralInterfacesAreOneDomain(t *testing.T) { olsrtest.SeveralInterfaces(t, standard, New) }

// read is olsrtest.Read of OLSRv1.
func read(packet []byte) (all []olsrtest.Message) {
	messages, err := split(packet, nil)
	if err != nil {
		panic(err) // it is a router's own
	}
	for i := range messages {
		m := &messages[i]
		all = append(all, olsrtest.Message{Hello: m.Type == typeHello, TC: m.Type == typeTC, Originator: m.Originator})
	}
	return all
}

func TestEachNetworkOfADomainHasItsOwnRates(t *testing.T) { olsrtest.Hybrid(t, New, read) }

func TestSilenceOnOneInterfaceLeavesTheOther(t *testing.T) { olsrtest.SilentInterface(t, New, read) }
