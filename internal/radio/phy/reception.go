package phy

import (
	"vignette.dev/vignette/internal/radio"
)

// Reception is a transmission's outcome at one receiver.
type Reception struct {
	// Received reports whether the frame arrived; if not, Reason says why.
	Received bool
	Reason   radio.Reason
	// PowerDBm received, the highest NoiseDBm in the receiver's band during the reception, and SINRDB, their
	// difference. Noise and SINR exclude interference if the signal was rejected before it was compared with
	// it.
	PowerDBm, NoiseDBm, SINRDB float64
	// Completion is the probability with which such a frame arrives.
	Completion float64
}

// Receive decides a transmission's outcome at a neighbour that listens on a frequency, and that may have followed
// another transmission instead. It is to be called at the end of the transmission or at most a second later. The draw depends only on Seed, the NEM ids of source
// and receiver, and Index. It counts for links, not for the receiver's counters: see
// radio.Port.AddMissed.
func (m *Medium) Receive(now int64, t *Transmission, to *Neighbour, listenHertz float64, followed bool) Reception {
	c := m.decide(now, t, to, listenHertz)
	if c.Received && !followed {
		c.Received, c.Reason = false, radio.Interfered
	}
	if s := m.member(t.Source); s != nil {
		l := s.updateLink(to.slot, float32(c.SINRDB))
		if c.Received {
			l.received++
			m.keepReceived(t, to.member, &c, listenHertz)
		} else {
			l.missed[c.Reason-radio.BelowSensitivity]++
		}
	}
	return c
}

func (m *Medium) decide(now int64, t *Transmission, to *Neighbour, listenHertz float64) Reception {
	c, heard := receivedSignal(t, to.GainDB, &m.receivers[to.slot], listenHertz)
	if !heard {
		return c
	}
	r := to.member
	if !m.isInterferenceFree() {
		m.recent.findOverlaps(t)
		if m.config.HalfDuplex && m.recent.isSending(r.port) {
			c.Reason = radio.HalfDuplex
			return c
		}
	}
	m.decideByCurve(now, t, r, &c, listenHertz)
	return c
}

// receivedSignal returns a transmission at a receiver, and whether the receiver can receive it without interference.
func receivedSignal(t *Transmission, gainDB float64, e *receiver, listenHertz float64) (c Reception, heard bool) {
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

// isInterferenceFree reports whether transmissions do not affect each other.
func (m *Medium) isInterferenceFree() bool {
	return m.config.Interference == None && !m.config.HalfDuplex
}

const roundingDB = 1e-9

// decideByCurve decides by the packet completion rate. As in EMANE the noise is the larger of thermal noise and
// interference.
func (m *Medium) decideByCurve(now int64, t *Transmission, r *member, c *Reception, listenHertz float64) {
	thermalSINR := c.SINRDB
	if m.config.Interference != None {
		if noise := m.interference(now, t, r, listenHertz); noise > r.thermal {
			c.NoiseDBm = DBm(noise)
			c.SINRDB = roundedSINR(c.PowerDBm, noise)
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
