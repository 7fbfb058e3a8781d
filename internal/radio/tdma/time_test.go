package tdma

import (
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

const slotTime = 10 * time.Millisecond

// together has 4 nodes with one slot of 10 ms each.
func together(t testing.TB) *simulation {
	return newSimulation(t, 4, func(c *Config) { c.Schedule = schedule(t, 4, milliseconds(4, slotTime), 1e6) })
}

// toSlot lets the time pass to a moment after the start of a node's next slot.
func (s *simulation) toSlot(node int, after time.Duration) {
	slot := s.model.time.slotFrom(s.now)
	for slot%s.model.time.slots != int64(node) {
		slot++
	}
	s.advanceTo(s.model.time.start(slot) + int64(after))
}

func TestSlotsAreAlignedToTheUnixEpoch(t *testing.T) {
	s := together(t)
	s.pass(time.Second)
	for node := range 4 {
		s.send(node, everybody, 0, uint64(node), 100)
	}
	s.pass(time.Second)
	for _, p := range s.ports {
		for _, a := range s.received[p] {
			end := a.at + epoch
			if begin := end - int64(slotTime); begin%int64(slotTime) != 0 || begin/int64(slotTime)%4 != int64(a.from-1) {
				t.Errorf("frame of node %d arrived at %d ns of the epoch; want the end of its slot", a.from, end)
			}
		}
	}
}

func TestAFrameThatComesInItsSlotWaitsForTheNext(t *testing.T) {
	s := together(t)
	s.pass(time.Second)
	for _, c := range []struct{ after, delay time.Duration }{{0, slotTime}, {1, 5*slotTime - 1}, {slotTime - 1, 4*slotTime + 1}} {
		s.toSlot(0, c.after)
		s.send(0, everybody, 0, 1, 100)
		s.pass(time.Second)
		all := s.received[s.ports[1]]
		if last := all[len(all)-1]; time.Duration(last.at-last.sent) != c.delay {
			t.Errorf("a frame %v after the start of its node's slot took %v; want %v", c.after, time.Duration(last.at-last.sent), c.delay)
		}
	}
}

func TestIdleNetworksAreNeverWoken(t *testing.T) {
	s := together(t)
	s.pass(time.Hour)
	if s.wakes != 0 {
		t.Errorf("woken %d times without a frame", s.wakes)
	}
	s.send(0, everybody, 0, 1, 100)
	s.pass(time.Hour)
	if s.wakes != 2 {
		t.Errorf("woken %d times for one frame; want 2: as its slot begins and ends", s.wakes)
	}
}

// The loop comes to the first slot only after its end, and to the second late, but within it.
func TestAMissedSlotIsCountedAndItsFrameGoesInTheNext(t *testing.T) {
	s := together(t)
	s.pass(time.Second)
	s.toSlot(0, time.Millisecond)
	s.send(0, everybody, 0, 1, 100)
	s.lateness = int64(slotTime)
	s.pass(5 * slotTime)
	s.lateness = int64(3 * time.Millisecond)
	s.pass(time.Second)
	slots := s.model.Statistics(true)[0].Slots
	if missed := slots.MissedIn; len(missed) != 1 || missed[0].Count != 1 || missed[0].To-missed[0].From != int64(4*slotTime) ||
		(missed[0].From+epoch)%int64(slotTime) != 0 {
		t.Errorf("missed slots: %v; want one, from its start to the node's next slot", missed)
	}
	if slots.Used != 1 || slots.Missed != 1 || !slices.Equal(s.sequences(1), []uint64{1}) || len(s.dropped()) != 0 {
		t.Errorf("%d slots used, %d missed, received %v, dropped %v; want 1 and 1, and the frame received", slots.Used, slots.Missed, s.sequences(1), s.dropped())
	}
	if slots.WorstLateness != int64(slotTime) || slots.Lateness.Count != 2 || slots.Lateness.Sum != int64(13*time.Millisecond) {
		t.Errorf("lateness %+v, worst %v; want 10 and 3 ms", slots.Lateness, time.Duration(slots.WorstLateness))
	}
	if again := s.model.Statistics(true)[0].Slots.MissedIn; len(again) != 0 {
		t.Errorf("missed slots are handed over twice: %v", again)
	}
	if again := s.model.Statistics(false)[0].Slots; again.WorstLateness != 0 || again.Missed != 1 {
		t.Errorf("after the reset: worst lateness %d of %d missed", again.WorstLateness, again.Missed)
	}
	if a := s.received[s.ports[1]][0]; (a.at-s.worst()+epoch)%int64(slotTime) != 0 || s.worst() != s.lateness {
		t.Errorf("it arrived at %d ns of the epoch; want %v after the end of its slot, and that counted", a.at+epoch, time.Duration(s.lateness))
	}
}

// The loop always comes too late. The first frame would have been sent in time; of the others nobody knows.
func TestFramesDroppedBecauseSlotsWereMissedAreNotCountedAsRadio(t *testing.T) {
	s := together(t)
	s.configure(func(c *Config) { c.Queue.Depth = 2 })
	s.pass(time.Second)
	s.lateness = int64(slotTime)
	s.send(0, everybody, 0, 1, 100)
	s.pass(2 * time.Second)
	s.toSlot(2, time.Millisecond) // of another node: the loop is not late now
	for i := range uint64(3) {
		s.send(0, everybody, 0, 2+i, 100)
	}
	if s.dropped()[radio.MissedSlot] != 1 || s.dropped()[radio.QueueFull] != 1 {
		t.Errorf("dropped %v; want one frame as missedSlot and one as queueFull", s.dropped())
	}
}

func TestAStepOfTheClockIsNoMissedSlot(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour, 3 * time.Microsecond, -3 * time.Microsecond} {
		offset := int64(epoch)
		s := newSimulation(t, 4, func(c *Config) {
			c.Schedule = schedule(t, 4, milliseconds(4, slotTime), 1e6)
			c.EpochOffset = func() int64 { return offset }
		})
		s.pass(time.Second)
		s.send(0, everybody, 0, 1, 100)
		s.pass(5 * time.Second)
		offset += int64(step)
		s.send(0, everybody, 0, 2, 100)
		s.pass(5 * time.Second)
		s.send(0, everybody, 0, 3, 100)
		s.pass(5 * time.Second)
		if got := s.sequences(1); !slices.Equal(got, []uint64{1, 2, 3}) || s.model.stations[0].slots.Missed != 0 {
			t.Errorf("step of %v: received %v, %d slots missed; want 1 to 3 and none", step, got, s.model.stations[0].slots.Missed)
		}
		if last := s.received[s.ports[1]][2]; (last.at+offset)%int64(slotTime) != 0 {
			t.Errorf("step of %v: slots are not aligned to the clock as it is now", step)
		}
	}
}

func TestAfterAStepOfTheClockNodesBeginWithTheNextMultiframe(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		offset := int64(epoch)
		s := newSimulation(t, 4, func(c *Config) {
			c.Schedule = schedule(t, 4, milliseconds(4, slotTime), 1e6)
			c.EpochOffset = func() int64 { return offset }
		})
		s.pass(time.Second)
		s.send(1, everybody, 0, 1, 100)
		s.pass(5 * time.Second)
		s.toSlot(1, 0)
		s.pass(4*slotTime - time.Millisecond)
		offset += int64(step) // whole multiframes
		stepped := s.now
		s.send(1, everybody, 0, 2, 100)
		s.pass(5 * time.Second)
		all := s.received[s.ports[0]]
		if want := int64(time.Millisecond + 4*slotTime + slotTime); len(all) != 2 || all[1].at-stepped != want {
			t.Errorf("step of %v: received %v; want the second %v after the step, at the end of the node's slot in the next multiframe", step, all, time.Duration(want))
		}
	}
}

func TestANewScheduleHoldsFromItsNextMultiframeOn(t *testing.T) {
	s := together(t)
	s.pass(time.Second)
	s.toSlot(0, time.Millisecond)
	s.toSlot(1, -5*time.Millisecond)
	s.send(1, everybody, 0, 1, 100)
	s.toSlot(1, 5*time.Millisecond) // node 2 sends now
	s.send(2, everybody, 0, 2, 100)
	changed := s.now
	s.configure(func(c *Config) { c.Schedule = schedule(t, 4, milliseconds(4, 2*slotTime), 500e3) })
	s.pass(time.Second)
	if got := s.sequences(0); !slices.Equal(got, []uint64{1, 2}) {
		t.Fatalf("received %v; want 1 and 2", got)
	}
	first, second := s.received[s.ports[0]][0], s.received[s.ports[0]][1]
	if first.at-changed != int64(5*time.Millisecond) {
		t.Errorf("the frame in flight arrived %v after the change; want 5ms as before", time.Duration(first.at-changed))
	}
	multiframe := int64(8 * slotTime)
	begin := (changed + epoch + multiframe - 1) / multiframe * multiframe
	if want := begin + 3*int64(2*slotTime); second.at+epoch != want {
		t.Errorf("the next frame arrived %v from the end of its slot in the first multiframe of the new schedule", time.Duration(second.at+epoch-want))
	}
}

func TestAScheduleThatStaysTheSameDisturbsNobody(t *testing.T) {
	s := together(t)
	s.pass(time.Second)
	s.toSlot(1, 0)
	s.send(2, everybody, 0, 1, 100)
	s.send(3, everybody, 0, 2, 100)
	before := s.now
	s.configure(func(c *Config) {
		c.Schedule = parsed(t, string(schedule(t, 4, milliseconds(4, slotTime), 1e6).XML()), nil)
		c.Schedule = parsed(t, `<emane-tdma-schedule><multiframe frequency="2.4G" power="1" class="0" datarate="1M"><frame index="0"><slot index="3" nodes="4"/></frame></multiframe></emane-tdma-schedule>`, c.Schedule)
	})
	// The texts say the radios' powers explicitly, which generated schedules do not: all are new.
	s.pass(time.Second)
	s.toSlot(1, 0)
	again := s.now
	s.send(2, everybody, 0, 3, 100)
	s.send(3, everybody, 0, 4, 100)
	s.configure(func(c *Config) {
		c.Schedule = parsed(t, `<emane-tdma-schedule><multiframe frequency="2.4G" power="2" class="0" datarate="1M"><frame index="0"><slot index="3" nodes="4"/></frame></multiframe></emane-tdma-schedule>`, c.Schedule)
	})
	s.pass(time.Second)
	all := s.received[s.ports[0]]
	if len(all) != 4 || all[0].at-before != int64(5*slotTime+slotTime) || all[2].at-again != int64(2*slotTime) {
		t.Errorf("received %v; want the node that the update does not name to go on at once", all)
	}
	if all[3].at-again != int64(3*slotTime+4*slotTime) {
		t.Errorf("the node that it names sent %v after it; want its slot in the next multiframe", time.Duration(all[3].at-again))
	}
}

func TestNodesWithoutAScheduleKeepTheirFrames(t *testing.T) {
	s := newSimulation(t, 2, func(*Config) {})
	for i := range uint64(300) {
		s.send(0, everybody, 0, i, 100)
	}
	s.pass(time.Minute)
	if s.wakes != 0 || s.kept() != 256 || s.dropped()[radio.QueueFull] != 44 {
		t.Errorf("woken %d times, %d frames wait, dropped %v; want none, 256, and 44 as queueFull", s.wakes, s.kept(), s.dropped())
	}
	s.configure(func(c *Config) { c.Schedule = schedule(t, 2, milliseconds(2, slotTime), 1e6) })
	s.pass(time.Minute)
	if s.kept() != 0 || len(s.sequences(1)) != 256 || s.sequences(1)[0] != 44 {
		t.Errorf("once there is a schedule %d wait and %d arrived; want all, the oldest having gone", s.kept(), len(s.sequences(1)))
	}
}

func TestWhoLeavesAndComesWhileAFrameIsSentInParts(t *testing.T) {
	s := together(t)
	s.pass(time.Second)
	s.send(0, everybody, 0, 1, 3000)
	s.send(1, everybody, 0, 2, 3000)
	s.pass(90 * time.Millisecond) // two of three parts
	ports := s.ports
	s.leave(ports[3])
	s.reorder(ports[0], ports[2], ports[1])
	joined := s.join(4, nil)
	s.pass(time.Second)
	for port, want := range map[*radio.Port]int{ports[0]: 1, ports[1]: 1, ports[2]: 2, ports[3]: 0, joined: 0} {
		if got := len(s.received[port]); got != want {
			t.Errorf("node %d received %d frames; want %d", port.NEM, got, want)
		}
	}
	if s.anyMissed() != 0 || s.kept() != 0 {
		t.Errorf("missed %v, %d frames left", s.anyMissed(), s.kept())
	}
	s.send(0, everybody, 0, 3, 5000)
	s.toSlot(0, time.Millisecond)
	s.leave(s.ports[0])
	s.pass(time.Second)
	if s.dropped()[radio.InFlightAtEnd] != 1 || s.kept() != 0 {
		t.Errorf("dropped %v, %d left; want the frame of the node that left as inFlightAtEnd", s.dropped(), s.kept())
	}
}

func TestAFrameInPartsMayBePushedOut(t *testing.T) {
	s := together(t)
	s.configure(func(c *Config) { c.Queue.Depth = 1 })
	s.pass(time.Second)
	s.send(0, everybody, 0, 1, 3000)
	s.toSlot(0, time.Millisecond)
	s.send(0, everybody, 0, 2, 100) // while its first part is on the air
	s.pass(time.Second)
	if !slices.Equal(s.sequences(1), []uint64{2}) || s.dropped()[radio.QueueFull] != 1 || s.kept() != 0 {
		t.Errorf("received %v, dropped %v, %d left; want 2 alone", s.sequences(1), s.dropped(), s.kept())
	}
}
