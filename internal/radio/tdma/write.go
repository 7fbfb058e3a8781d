package tdma

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// XML returns the schedule as an EMANE TDMA schedule file, with each node named in each slot.
func (s *Schedule) XML() []byte {
	var b bytes.Buffer
	st := s.structure
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<%s>\n", rootElement)
	fmt.Fprintf(&b, "  <structure frames=\"%d\" slots=\"%d\" slotoverhead=\"%d\" slotduration=\"%d\" bandwidth=\"%d\"/>\n",
		st.Frames, st.Slots, st.SlotOverhead/time.Microsecond, st.SlotDuration/time.Microsecond, st.BandwidthHertz)
	common := s.common()
	fmt.Fprintf(&b, "  <multiframe%s>\n", attributesOf(common, Slot{}))
	nems := s.NEMs()
	for _, frames := range s.equalFrames(nems) {
		fmt.Fprintf(&b, "    <frame index=%q>\n", ranges(frames))
		for slot := range st.Slots {
			s.writeSlot(&b, nems, frames[0], slot, common)
		}
		b.WriteString("    </frame>\n")
	}
	fmt.Fprintf(&b, "  </multiframe>\n</%s>\n", rootElement)
	return b.Bytes()
}

// common returns a slot whose values the multiframe gives for all. EMANE takes the highest class, which has
// no frames of nodes, from the multiframe alone.
func (s *Schedule) common() Slot {
	for _, is := range []func(Slot) bool{
		func(slot Slot) bool { return slot.Kind == Transmit && slot.Class == Classes-1 },
		func(slot Slot) bool { return slot.Kind == Transmit },
		func(slot Slot) bool { return slot.Kind == Receive },
	} {
		if i := slices.IndexFunc(s.slots, is); i >= 0 {
			return s.slots[i]
		}
	}
	return Slot{}
}

// equalFrames groups the indexes of frames in which every node does the same.
func (s *Schedule) equalFrames(nems []int) (groups [][]int) {
	group := map[string]int{}
	ids := map[*frame]int{}
	for i := range s.structure.Frames {
		var key strings.Builder
		for _, nem := range nems {
			f := s.plans[nem][i]
			if _, ok := ids[f]; !ok {
				ids[f] = len(ids)
			}
			fmt.Fprintf(&key, "%d ", ids[f])
		}
		g, ok := group[key.String()]
		if !ok {
			g = len(groups)
			group[key.String()] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

func (s *Schedule) writeSlot(b *bytes.Buffer, nems []int, frame, slot int, common Slot) {
	doing := map[cell][]int{}
	var order []cell
	for _, nem := range nems {
		c := s.plans[nem][frame].cells[slot]
		if doing[c] == nil {
			order = append(order, c)
		}
		doing[c] = append(doing[c], nem)
	}
	for _, c := range order {
		fmt.Fprintf(b, "      <slot index=\"%d\" nodes=%q>", slot, ranges(doing[c]))
		is := s.slots[c]
		switch is.Kind {
		case Transmit:
			fmt.Fprintf(b, "<tx%s/>", attributesOf(is, common))
		case Receive:
			fmt.Fprintf(b, "<rx%s/>", attributesOf(is, common))
		default:
			b.WriteString("<idle/>")
		}
		b.WriteString("</slot>\n")
	}
}

// attributesOf returns a slot's attributes that differ from the default slot's.
func attributesOf(s, otherwise Slot) string {
	var b strings.Builder
	if s.FrequencyHertz != otherwise.FrequencyHertz {
		fmt.Fprintf(&b, " frequency=\"%d\"", s.FrequencyHertz)
	}
	if s.Kind != Transmit {
		return b.String()
	}
	if otherwise.Kind != Transmit || s.PowerDBm != otherwise.PowerDBm {
		fmt.Fprintf(&b, " power=%q", strconv.FormatFloat(s.PowerDBm, 'f', -1, 64))
	}
	if otherwise.Kind != Transmit || s.Class != otherwise.Class {
		fmt.Fprintf(&b, " class=\"%d\"", s.Class)
	}
	if s.RateBitsPerSecond != otherwise.RateBitsPerSecond {
		fmt.Fprintf(&b, " datarate=\"%d\"", s.RateBitsPerSecond)
	}
	if s.Destination != 0 && otherwise.Kind != Idle {
		fmt.Fprintf(&b, " destination=\"%d\"", s.Destination)
	}
	return b.String()
}

// ranges writes ascending numbers as a list such as 0,5:7.
func ranges(numbers []int) string {
	var b strings.Builder
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(numbers[i]))
		if last > i {
			b.WriteString(":" + strconv.Itoa(numbers[last]))
		}
		i = last + 1
	}
	return b.String()
}
