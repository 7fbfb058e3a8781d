package emane

import (
	"fmt"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// Statistics of one NEM, in the terms of the native models.
type Statistics struct {
	NEM int
	// Counters have the transmissions and dropped frames. EMANE does not report delays and frames under way.
	// The kernel counts the node's frames at the veth, because EMANE's raw transport and its TDMA do not.
	radio.Counters
	// PortStatistics have no queue depth, because EMANE only reports its maximum. Links have averages since
	// the process started, and no times.
	phy.PortStatistics
	// Schedules is the number of accepted schedules, and Pathloss the number of NEMs with a known pathloss or
	// location. Without them the NEM sends or receives nothing.
	Schedules uint64
	Pathloss  int
	// LossDB is the pathloss from others, by NEM id, if the scenario has it.
	LossDB map[int]float64
}

// Scrape reads the counters of all NEMs of an EMANE process. port returns the port of a NEM id for Links.
// Links from NEMs without a port are left out.
func Scrape(c *Control, port func(nem int) *radio.Port) ([]Statistics, error) {
	nems, err := c.Manifest()
	if err != nil {
		return nil, err
	}
	all := make([]Statistics, len(nems))
	for i, nem := range nems {
		all[i] = Statistics{NEM: nem.ID, PortStatistics: phy.PortStatistics{Port: port(nem.ID)}}
		for _, component := range nem.Components {
			if err := all[i].scrape(c, component, port); err != nil {
				return nil, fmt.Errorf("NEM %d: %s: %w", nem.ID, component.Plugin, err)
			}
		}
	}
	return all, nil
}

func (s *Statistics) scrape(c *Control, component Component, port func(nem int) *radio.Port) error {
	values, err := c.Statistics(component.BuildID)
	if err != nil {
		return err
	}
	tables, err := c.Tables(component.BuildID)
	if err != nil {
		return err
	}
	switch component.Layer {
	case MAC:
		s.mac(values, tables, port)
	case PHY:
		s.physical(tables, port)
	}
	return nil
}

// transmitted returns unicast and broadcast packets. Some names end with the number of a layer's instance.
func transmitted(values map[string]any) (packets uint64) {
	for _, cast := range []string{"Unicast", "Broadcast"} {
		for _, instance := range []string{"", "0"} {
			packets += count(values, "numDownstreamPackets"+cast+"Tx"+instance)
		}
	}
	return packets
}

func count(values map[string]any, name string) uint64 {
	v, _ := values[name].(uint64)
	return v
}

// mac reads the model's counters. TDMA counts dropped bytes, not frames, so they are left out.
func (s *Statistics) mac(values map[string]any, tables map[string]Table, port func(nem int) *radio.Port) {
	s.SlotsUsed, s.SlotsMissed = count(values, "numTxSlotValid"), count(values, "numTxSlotErrorMissed")
	s.Schedules = count(values, "scheduler.scheduleAcceptFull") + count(values, "scheduler.scheduleAcceptUpdate")
	s.Transmissions = s.SlotsUsed
	if s.Transmissions == 0 {
		s.Transmissions = transmitted(values)
	}
	for _, cast := range []string{"Unicast", "Broadcast"} {
		t := tables[cast+"PacketDropTable0"]
		t.each(func(nem int, row map[string]any) {
			s.countMissed(port(nem), radio.LowSINR, count(row, "SINR"))
			s.Drops[radio.QueueFull] += count(row, "Queue Overflow")
		})
		t = tables[cast+"PacketAcceptTable0"]
		t.each(func(nem int, row map[string]any) {
			if nem == s.NEM {
				return // its own transmissions
			}
			if l := s.link(port(nem)); l != nil {
				l.Received += count(row, "Num Pkts Rx")
			}
		})
	}
	signals := tables["RFSignalTable"]
	signals.each(func(nem int, row map[string]any) {
		if l := s.link(port(nem)); l != nil {
			l.PowerDBm, l.NoiseDBm, l.SINRDB = number(row, "AvgRxPower"), number(row, "AvgNoiseFloor"), number(row, "AvgSINR")
		}
	})
}

// physical reads the physical layer's counters of frames that did not reach the model.
func (s *Statistics) physical(tables map[string]Table, port func(nem int) *radio.Port) {
	losses := tables["PathlossEventInfoTable"]
	losses.each(func(nem int, row map[string]any) {
		if s.LossDB == nil {
			s.LossDB = map[int]float64{}
		}
		s.LossDB[nem] = number(row, "Forward Pathloss")
	})
	s.Pathloss = len(tables["PathlossEventInfoTable"].Rows) + len(tables["LocationEventInfoTable"].Rows)
	for _, cast := range []string{"Unicast", "Broadcast"} {
		t := tables[cast+"PacketDropTable0"]
		t.each(func(nem int, row map[string]any) {
			s.countMissed(port(nem), radio.BelowSensitivity, count(row, "Rx Sensitivity")+count(row, "Propagation Model"))
		})
	}
}

// countMissed counts frames that did not reach the node, at the node and at the link from their sender.
func (s *Statistics) countMissed(from *radio.Port, reason radio.Reason, frames uint64) {
	if frames == 0 {
		return
	}
	s.Drops[reason] += frames
	if l := s.link(from); l != nil {
		l.Missed[reason-radio.BelowSensitivity] += frames
	}
}

// link returns the link from a port, and makes it if needed; nil for no port.
func (s *Statistics) link(from *radio.Port) *phy.LinkStatistics {
	if from == nil {
		return nil
	}
	for i := range s.Links {
		if s.Links[i].From == from {
			return &s.Links[i]
		}
	}
	s.Links = append(s.Links, phy.LinkStatistics{From: from})
	return &s.Links[len(s.Links)-1]
}

func number(row map[string]any, name string) float64 {
	v, _ := row[name].(float64)
	return v
}

// each calls f for each row of a table, with its NEM and its values by column. A row with the wrong number of
// values is left out.
func (t *Table) each(f func(nem int, row map[string]any)) {
	for _, values := range t.Rows {
		if len(values) != len(t.Labels) {
			continue
		}
		row := make(map[string]any, len(values))
		for i, label := range t.Labels {
			row[label] = values[i]
		}
		if nem, ok := row["NEM"].(uint64); ok {
			f(int(nem), row)
		}
	}
}
