package emane

import (
	"fmt"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// Statistics of one NEM in the terms of the native models.
type Statistics struct {
	NEM int
	// Counters have the transmissions and the frames dropped; times and what is under way EMANE does not tell. What the node sent and
	// received the kernel counts at the veth: EMANE's raw transport counts nothing, and neither does the model of TDMA.
	radio.Counters
	// PortStatistics have no queue depth: EMANE tells only how deep a queue has been. Of links they have averages since
	// the process started, and no times.
	phy.PortStatistics
	// Schedules is how many the NEM has taken, and Pathloss from how many NEMs it knows a pathloss or location: without them
	// it sends nothing, or hears nothing.
	Schedules uint64
	Pathloss  int
	// LossDB of what others send to the NEM, by their ids, where the scenario tells it.
	LossDB map[int]float64
}

// Scrape asks an EMANE process for the counters of all its NEMs. port finds the port of a NEM id for Links; links to those that
// it returns nil for are left out.
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

// transmitted unicast and broadcast packets. Names end with the number of a layer's instance where it has one.
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

// mac has what the model counts. That of TDMA counts the bytes that it drops, not the frames: they are not told here.
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
			s.miss(port(nem), radio.LowSINR, count(row, "SINR"))
			s.Drops[radio.QueueFull] += count(row, "Queue Overflow")
		})
		t = tables[cast+"PacketAcceptTable0"]
		t.each(func(nem int, row map[string]any) {
			if nem == s.NEM {
				return // what it has sent itself
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

// physical has what did not reach the model.
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
			s.miss(port(nem), radio.BelowSensitivity, count(row, "Rx Sensitivity")+count(row, "Propagation Model"))
		})
	}
}

// miss counts frames that did not reach the node, at the node and at its link to their sender.
func (s *Statistics) miss(from *radio.Port, reason radio.Reason, frames uint64) {
	if frames == 0 {
		return
	}
	s.Drops[reason] += frames
	if l := s.link(from); l != nil {
		l.Missed[reason-radio.BelowSensitivity] += frames
	}
}

// link to a port, made where there is none yet; nil for no port.
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

// each row of a table by the NEM that it is for, with its values by their columns. A row that is not as its labels say is left out.
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
