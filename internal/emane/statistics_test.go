package emane

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/radio"
)

// tdmaCounts are what a TDMA process reports of itself and of NEM 2.
type tdmaCounts struct {
	above, received, inLastSecond, lowSINRBytes, slotErrorBytes, longBytes, locked uint64
	sinr                                                                           float64
}

func tdmaAnswers(c tdmaCounts) answers {
	row := func(some ...*emanepb.Value) []*emanepb.Value { return some }
	mac := tables(
		table("QueueStatusTable", []string{"Queue", "Enqueued", "Dequeued", "Overflow", "Too Big"}, row(numeric(0), numeric(20), numeric(9), numeric(4), numeric(1)),
			row(numeric(3), numeric(7), numeric(5), numeric(0), numeric(0)), row(numeric(4), numeric(1), numeric(0), numeric(0), numeric(0))),
		table("BroadcastByteDropTable0", []string{"NEM", "SINR", "Freq", "Slot Error", "Long"}, row(numeric(2), numeric(c.lowSINRBytes), numeric(0), numeric(c.slotErrorBytes), numeric(c.longBytes))),
		table("NeighborMetricTable", []string{"NEM", "Rx Pkts", "SINR Avg", "NF Avg"},
			row(numeric(2), numeric(c.received), double(3), double(-110)), row(numeric(65535), numeric(0), double(0), double(0))),
		table("NeighborStatusTable", []string{"NEM", "Rx Pkts", "SINR Avg", "NF Avg"}, row(numeric(2), numeric(c.inLastSecond), double(c.sinr), double(-108))))
	phy := tables(
		table("BroadcastPacketAcceptTable0", []string{"NEM", "Num Pkts Rx"}, row(numeric(2), numeric(c.above)), row(numeric(1), numeric(99))),
		table("BroadcastPacketDropTable0", []string{"NEM", "Rx Sensitivity"}, row(numeric(3), numeric(6))),
		table("ReceivePowerTable", []string{"NEM", "Rx Power"}, row(numeric(2), double(-95))))
	return answers{
		{emanepb.Query_MANIFEST, 0}: manifest(component(2, MAC, ""), component(3, PHY, "")),
		{emanepb.Query_STATISTICS, 2}: statistics(statistic("numTxSlotValid", numeric(30)), statistic("numTxSlotErrorMissed", numeric(2)),
			statistic("numRxSlotErrorMissed", numeric(3)), statistic("numRxSlotErrorRxDuringTx", numeric(4)), statistic("numRxSlotErrorRxTooLong", numeric(5)),
			statistic("numRxSlotErrorRxLock", numeric(c.locked)), statistic("processedTimedEvents", numeric(1000)), statistic("avgTimedEventLatency", double(250))),
		{emanepb.Query_TABLES, 2}:     mac,
		{emanepb.Query_STATISTICS, 3}: statistics(statistic("numTimeSyncThresholdRewrite", numeric(8))),
		{emanepb.Query_TABLES, 3}:     phy,
	}
}

func scrapeTDMA(t *testing.T, before []Statistics, c tdmaCounts, names map[int]string) []Statistics {
	t.Helper()
	all, err := Scrape(before, emulator(t, tdmaAnswers(c)), names)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func namesOf(nems ...int) map[int]string {
	names := map[int]string{}
	for _, nem := range nems {
		names[nem] = fmt.Sprint("node-", nem)
	}
	return names
}

func TestWhatATDMAProcessSaysOfItselfIsRead(t *testing.T) {
	names := namesOf(1, 2, 3)
	s := scrapeTDMA(t, nil, tdmaCounts{above: 12, received: 10, inLastSecond: 1, lowSINRBytes: 1800, sinr: 7}, names)[0]
	drops := map[string]uint64{}
	s.Dropped(func(reason string, frames uint64) { drops[reason] = frames })
	if diff := cmp.Diff(map[string]uint64{"lowSINR": 2, "queueFull": 4, "tooLarge": 1, "missedSlot": 8, "notListening": 4, "belowSensitivity": 6}, drops); diff != "" {
		t.Error("drops:", diff)
	}
	if diff := cmp.Diff([]int{6, 0, 0, 2}, s.Waiting); diff != "" || s.InFlight != 8 {
		t.Errorf("waiting: %s; %d in all, want 8", diff, s.InFlight)
	}
	if s.SlotsUsed != 30 || s.SlotsMissed != 2 || s.Timers != 1000 || s.TimerLateness != 250*time.Millisecond || s.Rewritten != 8 || s.PowerDBm[2] != -95 {
		t.Errorf("%+v", s)
	}
	from2, from3 := s.linkFrom(2), s.linkFrom(3)
	if from2 == nil || from2.Received != 10 || from2.SINRDB != 7 || from2.Missed[radio.LowSINR-radio.BelowSensitivity] != 2 {
		t.Errorf("link from NEM 2: %+v", from2)
	}
	if from3 == nil || from3.Received != 0 || !math.IsNaN(from3.SINRDB) || from3.Missed[0] != 6 {
		t.Errorf("link from NEM 3: %+v; want no SINR, because nothing of it was received", from3)
	}
}

func TestBurstsAreTooLongOnlyWherePropagationTakesTimeAndEMANEIsNotLate(t *testing.T) {
	names := namesOf(1, 2, 3)
	var all []Statistics
	for _, step := range []struct {
		why                string
		tooLong, rewritten uint64
		tooLarge, missed   uint64 // a frame is too large for its queue, and three bursts missed their slots
	}{
		{"from afar", 5, 0, 6, 3},
		{"while EMANE was late", 9, 2, 6, 7},
		{"just afterwards", 10, 2, 6, 8},
		{"in time again", 12, 2, 8, 8},
	} {
		known := tdmaAnswers(tdmaCounts{})
		known[asked{emanepb.Query_STATISTICS, 2}] = statistics(statistic("numRxSlotErrorMissed", numeric(3)), statistic("numRxSlotErrorRxTooLong", numeric(step.tooLong)))
		known[asked{emanepb.Query_STATISTICS, 3}] = statistics(statistic("numTimeSyncThresholdRewrite", numeric(step.rewritten)))
		known[asked{emanepb.Query_TABLES, 3}] = tables(table("LocationEventInfoTable", []string{"NEM"}, []*emanepb.Value{numeric(2)}))
		var err error
		if all, err = Scrape(all, emulator(t, known), names); err != nil {
			t.Fatal(err)
		}
		if d := all[0].Drops; d[radio.TooLarge] != step.tooLarge || d[radio.MissedSlot] != step.missed {
			t.Errorf("%s: %d too large, %d missed; want %d and %d", step.why, d[radio.TooLarge], d[radio.MissedSlot], step.tooLarge, step.missed)
		}
	}
}

func TestFramesWithoutPowerAreBelowTheSensitivity(t *testing.T) {
	columns := []string{"Out-of-Band", "Rx Sensitivity", "Propagation Model", "Gain Location", "Gain Horizon", "Gain Profile", "Not FOI", "Fade Location", "Fade Algorithm", "Fade Select", "Gain Antenna"}
	row := []*emanepb.Value{numeric(2)}
	for range columns {
		row = append(row, numeric(1))
	}
	names, known := namesOf(1, 2), tdmaAnswers(tdmaCounts{})
	known[asked{emanepb.Query_TABLES, 3}] = tables(table("BroadcastPacketDropTable0", append([]string{"NEM"}, columns...), row))
	all, err := Scrape(nil, emulator(t, known), names)
	if err != nil {
		t.Fatal(err)
	}
	const want = 9 // all but those of other bands
	if l := all[0].linkFrom(2); all[0].Drops[radio.BelowSensitivity] != want || l == nil || l.Missed[0] != want {
		t.Errorf("%d below the sensitivity, link %+v; want %d at both", all[0].Drops[radio.BelowSensitivity], l, want)
	}
}

func TestWhatASilentRadioSendsIsDropped(t *testing.T) {
	known := tdmaAnswers(tdmaCounts{})
	known[asked{emanepb.Query_STATISTICS, 3}] = statistics(statistic("numDownstreamPacketsRadioSilenceEnabledDrop", numeric(7)))
	all, err := Scrape(nil, emulator(t, known), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := all[0].Drops[radio.EmissionControl]; got != 7 {
		t.Errorf("%d dropped by radio silence; want 7", got)
	}
}

func TestTheReasonOfLostTransmissionsIsThatOfTheirTime(t *testing.T) {
	names := namesOf(1, 2, 3)
	first := scrapeTDMA(t, nil, tdmaCounts{above: 12, received: 10, inLastSecond: 1, lowSINRBytes: 1800, sinr: 7}, names)
	second := scrapeTDMA(t, first, tdmaCounts{above: 17, received: 10, lowSINRBytes: 1800, slotErrorBytes: 4500}, names)
	l := second[0].linkFrom(2)
	if low, deaf := l.Missed[radio.LowSINR-radio.BelowSensitivity], l.Missed[radio.NotListening-radio.BelowSensitivity]; low != 2 || deaf != 5 {
		t.Errorf("%d by SINR and %d not listened for; want 2 as before, and 5", low, deaf)
	}
	if l.SINRDB != 7 {
		t.Errorf("SINR %v without a reception in the last second; want 7 as before", l.SINRDB)
	}
}

func TestLongAndLockedBurstsAreNotLostBySINR(t *testing.T) {
	names := namesOf(1, 2, 3)
	var all []Statistics
	for _, c := range []struct {
		why                      string
		counts                   tdmaCounts
		low, deaf, locked, drops uint64
	}{
		{"none is lost", tdmaCounts{above: 10, received: 10}, 0, 0, 0, 0},
		{"two end in the next slot", tdmaCounts{above: 12, received: 10, longBytes: 1800}, 0, 2, 0, 0},
		{"three come while another is followed", tdmaCounts{above: 15, received: 10, longBytes: 1800, locked: 3}, 0, 2, 3, 0},
		{"one is too weak", tdmaCounts{above: 16, received: 10, longBytes: 1800, locked: 3, lowSINRBytes: 900}, 1, 2, 3, 1},
	} {
		all = scrapeTDMA(t, all, c.counts, names)
		missed := all[0].linkFrom(2).Missed
		low, deaf, locked := missed[radio.LowSINR-radio.BelowSensitivity], missed[radio.NotListening-radio.BelowSensitivity], missed[radio.Interfered-radio.BelowSensitivity]
		if drops := all[0].Drops; low != c.low || deaf != c.deaf || locked != c.locked || drops[radio.LowSINR] != c.drops || drops[radio.Interfered] != c.locked {
			t.Errorf("%s: the link lost %d by SINR, %d not listened for and %d interfered, the node %v; want %d, %d and %d", c.why, low, deaf, locked, drops, c.low, c.deaf, c.locked)
		}
	}
}

func TestTheSINRSinceTheStartHoldsWhereNoneIsLater(t *testing.T) {
	names := namesOf(1, 2)
	s := scrapeTDMA(t, nil, tdmaCounts{above: 12, received: 10}, names)
	if l := s[0].linkFrom(2); l.SINRDB != 3 {
		t.Errorf("SINR %v, want 3", l.SINRDB)
	}
}

func TestWhatAnotherModelLosesIsCountedByItsReason(t *testing.T) {
	for layer, c := range map[Layer]struct {
		table  string
		labels []string
		want   map[radio.Reason]uint64
	}{
		MAC: {"BroadcastPacketDropTable1", []string{"NEM", "SINR", "Rx During Tx", "Hidden Busy", "Queue Overflow"},
			map[radio.Reason]uint64{radio.LowSINR: 1, radio.HalfDuplex: 2, radio.Interfered: 3, radio.QueueFull: 4}},
		Shim: {"UnicastPacketDropTable0", []string{"NEM", "Effect", "Rx Buff"}, map[radio.Reason]uint64{radio.Loss: 1, radio.QueueFull: 2}},
	} {
		row := []*emanepb.Value{numeric(2)}
		for i := range c.labels[1:] {
			row = append(row, numeric(uint64(i+1)))
		}
		counts := tables(table(c.table, c.labels, row), table("BroadcastPacketAcceptTable0", []string{"NEM", "Num Pkts Rx"}, []*emanepb.Value{numeric(2), numeric(7)}))
		names := namesOf(1, 2)
		all, err := Scrape(nil, emulator(t, answers{{emanepb.Query_MANIFEST, 0}: manifest(component(2, layer, "")), {emanepb.Query_STATISTICS, 2}: nil, {emanepb.Query_TABLES, 2}: counts}),
			names)
		if err != nil {
			t.Fatal(err)
		}
		for reason, want := range c.want {
			if got := all[0].Drops[reason]; got != want {
				t.Errorf("layer %d: %d dropped by %s, want %d", layer, got, reason, want)
			}
		}
		if links := all[0].Links; len(links) != 1 || links[0].Received != 7 {
			t.Errorf("layer %d: links are %+v, want one with 7 received", layer, links)
		}
	}
}
