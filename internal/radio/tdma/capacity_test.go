package tdma

import (
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

// A saturated node sends its slot's payload once a frame, whatever its frames' sizes. They are packed and cut
// to fit.
func TestASaturatedNodeFillsItsSlots(t *testing.T) {
	for _, c := range []struct {
		name      string
		structure Structure
		rate      uint64
		length    int
	}{
		{"4 slots of 10 ms at 1 Mbit/s", milliseconds(4, 10*time.Millisecond), 1e6, 1512},
		{"with overhead", Structure{Frames: 2, Slots: 5, SlotDuration: 5 * time.Millisecond, SlotOverhead: 500 * time.Microsecond, BandwidthHertz: 1e6}, 512e3, 942},
		{"narrowband", Structure{Frames: 1, Slots: 8, SlotDuration: 100 * time.Millisecond, BandwidthHertz: 25e3}, 15e3, 300},
		{"small frames", milliseconds(10, 5*time.Millisecond), 1e6, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := c.structure.Slots
			s := newSimulation(t, nodes, func(config *Config) { config.Schedule = schedule(t, nodes, c.structure, c.rate) })
			s.pass(time.Minute) // well into the multiframes
			const slots = 200
			frameTime := time.Duration(c.structure.Slots) * c.structure.SlotDuration
			end := s.now + slots*int64(frameTime)
			first := s.now
			for sequence := uint64(0); s.now < end; s.pass(frameTime / 4) {
				for s.model.stations[0].classes[0].count < 250 {
					s.send(0, s.address(1), 0, sequence, c.length)
					sequence++
				}
			}
			bytes := 0
			for _, a := range s.received[s.ports[1]] {
				if a.at > first && a.at <= end {
					bytes += a.length
				}
			}
			capacity := c.structure.Capacity(c.rate)
			expected := slots * capacity
			// What is cut by the beginning and the end of the measurement, and one slot's worth at each.
			if margin := 2 * (capacity + c.length); bytes < expected-margin || bytes > expected+margin {
				t.Errorf("%d bytes in %d slots of %d; want %d ± %d", bytes, slots, capacity, expected, margin)
			}
			if s.dropped()[radio.QueueFull] != 0 || s.model.Statistics(false)[0].Slots.Missed != 0 {
				t.Errorf("frames dropped: %v", s.dropped())
			}
			t.Logf("%.1f kbit/s; slot payload / frame time = %.1f kbit/s", float64(bytes)*8/(slots*frameTime.Seconds())/1e3,
				float64(capacity)*8/frameTime.Seconds()/1e3)
		})
	}
}

// A class without slots of its own goes in those of others, so that its frames may be too long for all of them.
func TestAFrameTooLongForAllSlotsDoesNotBlockItsClass(t *testing.T) {
	const video = 34 // DSCP of class 2
	fast := func(slots string) *Schedule {
		return four(t, slots+`<slot index="2" nodes="1"><tx datarate="2M"/></slot>`)
	}
	for _, c := range []struct {
		name     string
		schedule *Schedule
		rates    []Rate
		want     []uint64
		tooLarge int
	}{
		{"a generated schedule has slots of class 0 only", schedule(t, 4, milliseconds(4, slotTime), 1e6), nil, []uint64{2}, 1},
		{"at the only adaptive rate", schedule(t, 4, milliseconds(4, slotTime), 1e6), []Rate{{1e6, 0}}, []uint64{2}, 1},
		{"a faster slot of class 0 takes it", fast(`<slot index="0" nodes="1"/><slot index="3" nodes="2"/>`), nil, []uint64{1, 2}, 0},
		{"it waits for a slot of its own class", fast(`<slot index="0" nodes="1"/><slot index="1" nodes="1"><tx class="2" datarate="2M"/></slot><slot index="3" nodes="2"/>`), nil, []uint64{1, 2}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(t, 2, func(config *Config) {
				config.Schedule, config.AdaptiveRates, config.Queue.Fragmentation = c.schedule, c.rates, false
			})
			s.pass(time.Second)
			s.send(0, everybody, video, 1, 1500) // a slot at 1 Mbit/s takes 1250 bytes
			s.send(0, everybody, video, 2, 100)
			s.pass(time.Second)
			if got := s.model.stations[0].count; got != 0 || s.dropped()[radio.TooLarge] != c.tooLarge || !slices.Equal(s.sequences(1), c.want) {
				t.Errorf("%d frames wait, dropped %v, received %v; want none, %d as tooLarge, and %v", got, s.dropped(), s.sequences(1), c.tooLarge, c.want)
			}
		})
	}
}

// EMANE 1.5.3 was measured with 4 NEMs, slots of 10 ms and 1 Mbit/s. One-way delays were 10 to 50 ms, 33 ms
// on average. A saturated unicast flow carried 237 kbit/s of UDP payload.
func TestMeasurementsOfEMANEAreWithinTheModelsRange(t *testing.T) {
	s := newSimulation(t, 4, func(c *Config) { c.Schedule = schedule(t, 4, milliseconds(4, 10*time.Millisecond), 1e6) })
	s.pass(time.Second)
	for i := range 1000 {
		s.send(0, everybody, 0, uint64(i), 942)
		s.pass(2003 * time.Millisecond / 20)
	}
	s.pass(time.Second)
	var delays []float64
	for _, a := range s.received[s.ports[1]] {
		delays = append(delays, float64(a.at-a.sent)/1e6)
	}
	if m := mean(delays); len(delays) != 1000 || m < 28 || m > 35 {
		t.Errorf("%d of 1000 frames arrived after %.1f ms on average; want 28 to 35", len(delays), m)
	}
	const headers = 8 + 20 + ethernetHeader
	for _, payload := range []int{900, 1470} {
		first, before := s.now, len(s.received[s.ports[1]])
		for i := uint64(0); s.now < first+int64(20*time.Second); s.pass(10 * time.Millisecond) {
			for s.model.stations[0].classes[0].count < 100 {
				s.send(0, s.address(1), 0, i, payload+headers)
				i++
			}
		}
		goodput := float64((len(s.received[s.ports[1]])-before)*payload*8) / 20e3
		if goodput < 237*0.97 || goodput > 237*1.03 {
			t.Errorf("UDP payload of %d bytes: %.1f kbit/s; want 237 ± 3 %%", payload, goodput)
		}
		t.Logf("UDP payload of %d bytes: %.1f kbit/s", payload, goodput)
		s.pass(10 * time.Second)
	}
}

func TestCapacityIsDurationLessOverheadTimesRate(t *testing.T) {
	for _, c := range []struct {
		structure Structure
		rate      uint64
		bytes     int
	}{
		{milliseconds(4, 10*time.Millisecond), 1e6, 1250},
		{Structure{SlotDuration: 5 * time.Millisecond, SlotOverhead: 3 * time.Microsecond}, 1e6, 624},
		{Structure{SlotDuration: time.Microsecond}, 1e6, 0},
		{Structure{SlotDuration: 100 * time.Millisecond}, 15e3, 187},
	} {
		if got := c.structure.Capacity(c.rate); got != c.bytes {
			t.Errorf("a slot of %v less %v at %d bit/s: %d bytes; want %d", c.structure.SlotDuration, c.structure.SlotOverhead, c.rate, got, c.bytes)
		}
	}
}
