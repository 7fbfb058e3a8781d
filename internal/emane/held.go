package emane

import "vignette.dev/vignette/internal/radio/tdma"

// HeldSchedule is the schedule that a TDMA process has.
type HeldSchedule struct{ structure, slots Table }

const (
	structureTable = "scheduler.StructureInfoTable"
	slotTable      = "scheduler.ScheduleInfoTable"
)

// ReadSchedule asks a process of a NEM with these components for its schedule.
func ReadSchedule(c *Control, components []Component) (*HeldSchedule, error) {
	held := &HeldSchedule{}
	for _, component := range components {
		if component.Layer != MAC {
			continue
		}
		tables, err := c.Tables(component.BuildID, structureTable, slotTable)
		if err != nil {
			return nil, err
		}
		held.structure, held.slots = tables[structureTable], tables[slotTable]
	}
	return held, nil
}

// Rate of the slots to send; 0 without any.
func (h *HeldSchedule) Rate() (bitsPerSecond uint64) {
	h.slots.rows(func(row map[string]any) {
		if row["Type"] == "TX" {
			bitsPerSecond = count(row, "Data Rate")
		}
	})
	return bitsPerSecond
}

// Is reports whether it is what ScheduleAt tells the NEM.
func (h *HeldSchedule) Is(nem int, s *tdma.Schedule, bitsPerSecond uint64) bool {
	structure := s.Structure()
	same := h.structureIs(structure) && len(h.slots.Rows) == structure.Frames*structure.Slots
	h.slots.rows(func(row map[string]any) {
		frame, slot := count(row, "Frame"), count(row, "Slot")
		same = same && frame < uint64(structure.Frames) && slot < uint64(structure.Slots) && //nolint:gosec // a structure's
			slotIs(row, s.Slot(nem, int(frame), int(slot)), bitsPerSecond) //nolint:gosec // within the structure
	})
	return same
}

func (h *HeldSchedule) structureIs(s tdma.Structure) bool {
	values := map[any]any{}
	h.structure.rows(func(row map[string]any) { values[row["Name"]] = row["Value"] })
	return values["frames"] == uint64(s.Frames) && values["slots"] == uint64(s.Slots) && values["bandwidth"] == s.BandwidthHertz && //nolint:gosec // a structure's
		values["slotduration"] == s.SlotDuration.Microseconds() && values["slotoverhead"] == s.SlotOverhead.Microseconds()
}

func slotIs(row map[string]any, s tdma.Slot, bitsPerSecond uint64) bool {
	switch s.Kind {
	case tdma.Transmit:
		if bitsPerSecond != 0 {
			s.RateBitsPerSecond = bitsPerSecond
		}
		return row["Type"] == "TX" && count(row, "Frequency") == s.FrequencyHertz && count(row, "Data Rate") == s.RateBitsPerSecond &&
			number(row, "Power") == s.PowerDBm && count(row, "Class") == uint64(s.Class) && count(row, "Destination") == uint64(s.Destination) //nolint:gosec // a slot's
	case tdma.Receive:
		return row["Type"] == "RX" && count(row, "Frequency") == s.FrequencyHertz
	default:
		return row["Type"] == "IDLE"
	}
}
