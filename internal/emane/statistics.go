package emane

import (
	"fmt"
	"math"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/tdma"
)

// Statistics of one NEM, in the terms of the native models.
type Statistics struct {
	NEM int
	// Counters have the transmissions and dropped frames. Of TDMA, receivers' drops are transmissions, and InFlight are
	// the frames that wait. EMANE does not report delays and frames under way.
	// The kernel counts the node's frames at the veth, because EMANE's raw transport and its TDMA do not.
	radio.Counters
	// SlotsUsed and SlotsMissed of a TDMA radio.
	SlotsUsed, SlotsMissed uint64
	// Links have the SINR of the last second with a reception, NaN where it is unknown.
	Links []phy.LinkStatistics
	// Waiting frames of a TDMA radio by class of service; nil for RF Pipe.
	Waiting []int
	// Schedules is the number of accepted schedules, and Pathloss the number of NEMs with a known pathloss or
	// location. Without them the NEM sends or receives nothing.
	Schedules uint64
	Pathloss  int
	// LossDB is the pathloss from others, by NEM id, if the scenario has it.
	LossDB map[int]float64
	// PowerDBm is the received power of the last transmission from others above the sensitivity, by NEM id, if EMANE has
	// its table.
	PowerDBm map[int]float64
	// Timers are the timers of the model, and TimerLateness their lateness in all.
	Timers        uint64
	TimerLateness time.Duration
	// Rewritten are the frames that came so late that EMANE took the time of their arrival for that of their sending.
	Rewritten uint64

	slots   slotErrors
	located bool // EMANE knows locations, and has propagation delays
	rewrote bool // Rewritten has grown since the statistics before
	// tooFar are those of slots.tooLong that came from too far.
	tooFar uint64
	bursts map[int]*burstCounts
	recent map[int]bool // NEM ids of which something was received in the last second
}

// slotErrors are the transmissions that a TDMA receiver did not take, by reason.
type slotErrors struct{ missed, idle, sending, tooLong, otherFrequency, locked uint64 }

// burstCounts are a TDMA receiver's counts of transmissions from one sender.
type burstCounts struct {
	// above are those above the sensitivity, received those that it took.
	above, received uint64
	// bytes of those that it did not take.
	lowSINR, notListening uint64
}

// Scrape reads the counters of all NEMs of an EMANE process. before are those of the last time, if they were read already.
// names are those of nodes by NEM id, for Links. Links from NEMs without a name are left out.
func Scrape(before []Statistics, c *Control, names map[int]string) ([]Statistics, error) {
	nems, err := c.Manifest()
	if err != nil {
		return nil, err
	}
	all := make([]Statistics, len(nems))
	for i, nem := range nems {
		s := &all[i]
		s.NEM = nem.ID
		for _, component := range nem.Components {
			if err := s.scrape(c, component, names); err != nil {
				return nil, fmt.Errorf("NEM %d: %s: %w", nem.ID, component.Plugin, err)
			}
		}
		var last *Statistics
		if i < len(before) && before[i].NEM == s.NEM && before[i].Timers <= s.Timers {
			last = &before[i]
		}
		s.countTooLong(last)
		s.follow(last, names)
	}
	return all, nil
}

func (s *Statistics) scrape(c *Control, component Component, names map[int]string) error {
	values, err := c.Statistics(component.BuildID)
	if err != nil {
		return err
	}
	tables, err := c.Tables(component.BuildID)
	if err != nil {
		return err
	}
	switch component.Layer {
	case MAC, Shim:
		s.mac(values, tables, names)
	case PHY:
		s.physical(values, tables, names)
	}
	return nil
}

func count(values map[string]any, name string) uint64 {
	v, _ := values[name].(uint64)
	return v
}

// mac reads the model's counters.
func (s *Statistics) mac(values map[string]any, tables map[string]Table, names map[int]string) {
	s.SlotsUsed, s.SlotsMissed = count(values, "numTxSlotValid"), count(values, "numTxSlotErrorMissed")
	s.slots = slotErrors{count(values, "numRxSlotErrorMissed"), count(values, "numRxSlotErrorRxDuringIdle"), count(values, "numRxSlotErrorRxDuringTx"),
		count(values, "numRxSlotErrorRxTooLong"), count(values, "numRxSlotErrorRxWrongFrequency"), count(values, "numRxSlotErrorRxLock")}
	s.Schedules = count(values, "scheduler.scheduleAcceptFull") + count(values, "scheduler.scheduleAcceptUpdate")
	s.Timers = count(values, "processedTimedEvents")
	s.TimerLateness = time.Duration(number(values, "avgTimedEventLatency") * float64(s.Timers) * float64(time.Microsecond))
	s.frames(tables, names)
	s.queues(tables)
	s.lostBursts(tables)
	s.signals(tables, names)
}

// instances of a layer's counters, by the ends of their names: 802.11 has one for each access category.
var instances = []string{"", "0", "1", "2", "3"}

// frames reads the counters of models that count frames.
func (s *Statistics) frames(tables map[string]Table, names map[int]string) {
	for _, instance := range instances {
		for _, cast := range []string{"Unicast", "Broadcast"} {
			t := tables[cast+"PacketDropTable"+instance]
			t.each(func(nem int, row map[string]any) {
				s.countMissed(nem, names, radio.LowSINR, count(row, "SINR"))
				s.countMissed(nem, names, radio.HalfDuplex, count(row, "Rx During Tx"))
				s.countMissed(nem, names, radio.Interfered, count(row, "Hidden Busy"))
				s.Drops[radio.Loss] += count(row, "Effect")
				s.Drops[radio.QueueFull] += count(row, "Queue Overflow") + count(row, "Rx Buff")
			})
			t = tables[cast+"PacketAcceptTable"+instance]
			t.each(func(nem int, row map[string]any) {
				if nem == s.NEM {
					return // its own transmissions
				}
				if l := s.link(nem, names); l != nil {
					l.Received += count(row, "Num Pkts Rx")
				}
			})
		}
	}
}

// queues reads the queues of a TDMA radio. The last one is for messages of schedulers.
func (s *Statistics) queues(tables map[string]Table) {
	t, is := tables["QueueStatusTable"]
	if !is {
		return
	}
	s.Waiting = make([]int, tdma.Classes-1)
	t.rows(func(row map[string]any) {
		class, overflow, tooBig := count(row, "Queue"), count(row, "Overflow"), count(row, "Too Big")
		s.Drops[radio.QueueFull] += overflow
		s.Drops[radio.TooLarge] += tooBig
		if gone := count(row, "Dequeued") + overflow + tooBig; class < uint64(len(s.Waiting)) && gone < count(row, "Enqueued") {
			s.Waiting[class] = int(count(row, "Enqueued") - gone) //nolint:gosec // within a queue's depth
			s.InFlight += s.Waiting[class]
		}
	})
	s.Drops[radio.MissedSlot] += s.slots.missed
	s.Drops[radio.NotListening] += s.slots.idle + s.slots.sending + s.slots.otherFrequency
	s.Drops[radio.Interfered] += s.slots.locked
}

// countTooLong counts bursts that ended in the next slot, since the statistics before. EMANE lost them by its lateness if it took
// the time of their arrival for that of their sending; else they came from too far. Without locations nothing comes from far.
func (s *Statistics) countTooLong(before *Statistics) {
	if before == nil {
		before = &Statistics{}
	}
	s.rewrote = s.Rewritten > before.Rewritten
	s.tooFar = before.tooFar
	if s.located && !s.rewrote && !before.rewrote { // the slots of rewritten bursts may be counted in the next statistics
		s.tooFar += s.slots.tooLong - min(before.slots.tooLong, s.slots.tooLong)
	}
	s.Drops[radio.TooLarge] += s.tooFar
	s.Drops[radio.MissedSlot] += s.slots.tooLong - min(s.tooFar, s.slots.tooLong)
}

// lostBursts reads what a TDMA receiver did not take, which EMANE counts in bytes.
func (s *Statistics) lostBursts(tables map[string]Table) {
	for class := range tdma.Classes {
		for _, cast := range []string{"Unicast", "Broadcast"} {
			t := tables[fmt.Sprintf("%sByteDropTable%d", cast, class)]
			t.each(func(nem int, row map[string]any) {
				if nem != s.NEM {
					h := s.burstsFrom(nem)
					h.lowSINR += count(row, "SINR")
					// Long bursts too: the node has their reason (countTooLong).
					h.notListening += count(row, "Freq") + count(row, "Slot Error") + count(row, "Long")
				}
			})
		}
	}
}

func (s *Statistics) burstsFrom(nem int) *burstCounts {
	if s.bursts[nem] == nil {
		if s.bursts == nil {
			s.bursts = map[int]*burstCounts{}
		}
		s.bursts[nem] = &burstCounts{}
	}
	return s.bursts[nem]
}

// signals reads the quality of what was received.
func (s *Statistics) signals(tables map[string]Table, names map[int]string) {
	since := tables["RFSignalTable"]
	since.each(func(nem int, row map[string]any) {
		if l := s.link(nem, names); l != nil {
			l.SINRDB = number(row, "AvgSINR")
		}
	})
	metrics := tables["NeighborMetricTable"] // since the process has started
	metrics.each(func(nem int, row map[string]any) {
		received := count(row, "Rx Pkts")
		if s.Waiting == nil || received == 0 {
			return // RF Pipe counts frames elsewhere
		}
		s.burstsFrom(nem).received = received
		if l := s.link(nem, names); l != nil {
			l.Received = received
			l.SINRDB = number(row, "SINR Avg")
		}
	})
	s.recent = map[int]bool{}
	latest := tables["NeighborStatusTable"] // of the last second
	latest.each(func(nem int, row map[string]any) {
		if l := s.link(nem, names); l != nil && count(row, "Rx Pkts") > 0 {
			s.recent[nem] = true
			l.SINRDB = number(row, "SINR Avg")
		}
	})
}

// follow completes statistics by those that were read before from the same process, if there are any.
func (s *Statistics) follow(before *Statistics, names map[int]string) {
	for nem, h := range s.bursts {
		if l := s.link(nem, names); l != nil && s.Waiting != nil {
			s.missedBursts(l, h, before)
		}
	}
	if before == nil {
		return
	}
	for i := range before.Links {
		old := &before.Links[i]
		if l := s.link(old.FromNEM, names); l != nil && !s.recent[old.FromNEM] && !math.IsNaN(old.SINRDB) {
			l.SINRDB = old.SINRDB
		}
	}
}

// missedBursts counts the transmissions above the sensitivity that the node did not take, by the reason of most bytes
// since the statistics before: EMANE counts the reasons in bytes only. It counts no bytes of bursts that a receiver did not follow
// (RX_LOCK in its src/models/mac/tdma/basemodelimpl.cc).
func (s *Statistics) missedBursts(l *phy.LinkStatistics, h *burstCounts, before *Statistics) {
	var was burstCounts
	lost := h.above - min(h.received, h.above)
	for _, reason := range []radio.Reason{radio.LowSINR, radio.NotListening, radio.Interfered} {
		if old := before.linkFrom(l.FromNEM); old != nil {
			l.Missed[reason-radio.BelowSensitivity] = old.Missed[reason-radio.BelowSensitivity]
		}
		lost -= min(lost, l.Missed[reason-radio.BelowSensitivity])
	}
	if before != nil && before.bursts[l.FromNEM] != nil {
		was = *before.bursts[l.FromNEM]
	}
	switch lowSINR, notListening := h.lowSINR-min(was.lowSINR, h.lowSINR), h.notListening-min(was.notListening, h.notListening); {
	case lowSINR > 0 && lowSINR >= notListening:
		l.Missed[radio.LowSINR-radio.BelowSensitivity] += lost
	case notListening > 0:
		l.Missed[radio.NotListening-radio.BelowSensitivity] += lost
	case before != nil && s.slots.locked > before.slots.locked || before == nil && s.slots.locked > 0:
		l.Missed[radio.Interfered-radio.BelowSensitivity] += lost // the node has them by queues
	}
	s.Drops[radio.LowSINR] += l.Missed[radio.LowSINR-radio.BelowSensitivity]
}

// withoutPower are the columns of frames whose power was too little, or unknown: beyond the horizon, and without the position that
// a gain or fading needs.
var withoutPower = []string{"Rx Sensitivity", "Propagation Model", "Gain Location", "Gain Horizon", "Gain Profile", "Gain Antenna",
	"Fade Location", "Fade Algorithm", "Fade Select"}

// physical reads the physical layer's counters of frames that did not reach the model.
func (s *Statistics) physical(values map[string]any, tables map[string]Table, names map[int]string) {
	s.Rewritten = count(values, "numTimeSyncThresholdRewrite")
	// What the model sends, a silent radio drops (EMANE's src/libemane/frameworkphy.cc).
	s.Drops[radio.EmissionControl] += count(values, "numDownstreamPacketsRadioSilenceEnabledDrop")
	losses := tables["PathlossEventInfoTable"]
	losses.each(func(nem int, row map[string]any) {
		if s.LossDB == nil {
			s.LossDB = map[int]float64{}
		}
		s.LossDB[nem] = number(row, "Forward Pathloss")
	})
	powers := tables["ReceivePowerTable"]
	powers.each(func(nem int, row map[string]any) {
		if s.PowerDBm == nil {
			s.PowerDBm = map[int]float64{}
		}
		s.PowerDBm[nem] = number(row, "Rx Power")
	})
	locations := len(tables["LocationEventInfoTable"].Rows)
	s.located, s.Pathloss = locations > 0, len(tables["PathlossEventInfoTable"].Rows)+locations
	for _, cast := range []string{"Unicast", "Broadcast"} {
		t := tables[cast+"PacketDropTable0"]
		t.each(func(nem int, row map[string]any) {
			for _, column := range withoutPower {
				s.countMissed(nem, names, radio.BelowSensitivity, count(row, column))
			}
		})
		t = tables[cast+"PacketAcceptTable0"]
		t.each(func(nem int, row map[string]any) {
			if nem != s.NEM {
				s.burstsFrom(nem).above += count(row, "Num Pkts Rx")
			}
		})
	}
}

// countMissed counts frames that did not reach the node, at the node and at the link from their sender.
func (s *Statistics) countMissed(from int, names map[int]string, reason radio.Reason, frames uint64) {
	if frames == 0 {
		return
	}
	if l := s.link(from, names); l != nil { // else of another network of the spectrum
		s.Drops[reason] += frames
		l.Missed[reason-radio.BelowSensitivity] += frames
	}
}

// link returns the link from a NEM, and makes it if needed; nil for a NEM without a name.
func (s *Statistics) link(from int, names map[int]string) *phy.LinkStatistics {
	if names[from] == "" {
		return nil
	}
	if l := s.linkFrom(from); l != nil {
		return l
	}
	s.Links = append(s.Links, phy.LinkStatistics{From: names[from], FromNEM: from, SINRDB: math.NaN()})
	return &s.Links[len(s.Links)-1]
}

// linkFrom returns the link from a NEM, nil if there is none.
func (s *Statistics) linkFrom(from int) *phy.LinkStatistics {
	if s == nil {
		return nil
	}
	for i := range s.Links {
		if s.Links[i].FromNEM == from {
			return &s.Links[i]
		}
	}
	return nil
}

func number(row map[string]any, name string) float64 {
	v, _ := row[name].(float64)
	return v
}

// each calls f for each row of a table with a NEM.
func (t *Table) each(f func(nem int, row map[string]any)) {
	t.rows(func(row map[string]any) {
		if nem, ok := row["NEM"].(uint64); ok {
			f(int(nem), row)
		}
	})
}

// rows calls f for each row of a table, with its values by column. A row with the wrong number of values is left out.
func (t *Table) rows(f func(row map[string]any)) {
	for _, values := range t.Rows {
		if len(values) != len(t.Labels) {
			continue
		}
		row := make(map[string]any, len(values))
		for i, label := range t.Labels {
			row[label] = values[i]
		}
		f(row)
	}
}
