package phy

import (
	"math"

	"vignette.dev/vignette/internal/radio"
)

// Reception is what one receiver makes of a transmission.
type Reception struct {
	// Received tells that the frame arrived; else Reason tells why not.
	Received bool
	Reason   radio.Reason
	// PowerDBm received, NoiseDBm in the receiver's band, the highest while it received, and SINRDB, the difference of both.
	// Noise and SINR are those without interference where the signal never got as far as to be held against it.
	PowerDBm, NoiseDBm, SINRDB float64
	// Completion is the probability with which such a frame arrives.
	Completion float64
}

// Receive decides what becomes of a transmission at a neighbour that listens on a frequency; to be called at its end or
// at most a second later. The draw is the same for the same Seed, NEM ids of source and receiver, and Index, whatever else
// happens. It counts for Links, not for the receiver's counters: see radio.Network.Miss.
func (m *Medium) Receive(now int64, t *Transmission, to *Neighbour, listenHertz float64) Reception {
	c := m.judge(now, t, to, listenHertz)
	if s := m.member(t.Source); s != nil {
		l := s.hears(to.slot, now, c.sounding())
		if c.Received {
			l.received++
		} else {
			l.missed[c.Reason-radio.BelowSensitivity]++
		}
	}
	return c
}

func (m *Medium) judge(now int64, t *Transmission, to *Neighbour, listenHertz float64) Reception {
	c, heard := arrival(t, to.GainDB, &m.ears[to.slot], listenHertz)
	if !heard {
		return c
	}
	r := to.member
	if !m.quiet() {
		m.air.prepare(t)
		if m.config.HalfDuplex && m.air.sends(r.port) {
			c.Reason = radio.HalfDuplex
			return c
		}
	}
	m.draw(now, t, r, &c, listenHertz)
	return c
}

// arrival of a transmission at a receiver, and whether it is heard there, whatever else is sent.
func arrival(t *Transmission, gainDB float64, e *ear, listenHertz float64) (c Reception, heard bool) {
	c = Reception{PowerDBm: t.PowerDBm + gainDB, NoiseDBm: e.thermalDBm}
	if t.bandwidthHertz > e.bandwidthHertz {
		c.PowerDBm += DBm(e.bandwidthHertz / t.bandwidthHertz)
	}
	c.SINRDB = c.PowerDBm - c.NoiseDBm
	switch {
	case t.FrequencyHertz != listenHertz || t.subID != e.subID:
		c.Reason = radio.NotListening
	case c.PowerDBm < e.thermalDBm:
		c.Reason = radio.BelowSensitivity
	default:
		heard = true
	}
	return c, heard
}

// quiet tells that nothing but the sender decides what becomes of a transmission.
func (m *Medium) quiet() bool { return m.config.Interference == None && !m.config.HalfDuplex }

// resolutionDB keeps rounding errors of logarithms away from the ends of curves: signals of equal strength are at 0 dB.
const resolutionDB = 1e-9

// draw lets the packet completion rate decide. As in EMANE the noise is the larger one of thermal noise and interference.
func (m *Medium) draw(now int64, t *Transmission, r *member, c *Reception, listenHertz float64) {
	thermalSINR := c.SINRDB
	if m.config.Interference != None {
		if noise := m.interference(now, t, r, listenHertz); noise > r.thermal {
			c.NoiseDBm = DBm(noise)
			c.SINRDB = math.Round((c.PowerDBm-c.NoiseDBm)/resolutionDB) * resolutionDB
		}
	}
	c.Completion = m.config.PCR.Completion(c.SINRDB, t.Bytes, t.RateBitsPerSecond)
	if c.Completion >= 1 {
		c.Received = true
		return
	}
	c.Reason = radio.LowSINR
	if c.Completion <= 0 && c.SINRDB >= thermalSINR {
		return
	}
	drawn := m.draws.uniform(t.Source.NEM, r.port.NEM, t.Index)
	c.Received = drawn < c.Completion
	if !c.Received && c.SINRDB < thermalSINR && drawn < m.config.PCR.Completion(thermalSINR, t.Bytes, t.RateBitsPerSecond) {
		c.Reason = radio.Interfered
	}
}
