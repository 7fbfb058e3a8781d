package rfc5444

import (
	"math"
	"math/bits"
	"time"
)

// Message and address TLVs of times (RFC 5497 section 7).
const (
	IntervalTime = 0
	ValidityTime = 1
)

// Infinite is the longest time; as a code, 255.
const Infinite = time.Duration(math.MaxInt64)

// TimeCode returns the code of the least time that is not less than t (RFC 5497 section 5).
func TimeCode(t time.Duration) uint8 {
	if t <= 0 {
		return 0
	}
	for code := 1; code < 255; code++ {
		if Time(uint8(code)) >= t {
			return uint8(code)
		}
	}
	return 255
}

// Time of a code: (1 + a/8)·2^b·C, where C is 1/1024 s, a the low three bits and b the high five (RFC 5497 section 5).
func Time(code uint8) time.Duration {
	switch code {
	case 0:
		return 0
	case 255:
		return Infinite
	}
	a, b := int64(code&7), uint(code>>3)
	// C is 1/1024 s; an eighth of it is 1953125/16 ns.
	return time.Duration((8 + a) << b * 1953125 / 16)
}

// TimeAt reads the value of a time TLV for a receiver at that many hops. It has one code, or codes for
// distances up to a hop count each and one for farther ones (RFC 5497 section 5.1). ok is false for other
// values.
func TimeAt(value []byte, hops uint8) (t time.Duration, ok bool) {
	if len(value)%2 == 0 {
		return 0, false
	}
	for len(value) > 1 {
		if hops <= value[1] {
			break
		}
		value = value[2:]
	}
	return Time(value[0]), true
}

// Link metrics (RFC 7181 section 6.2).
const (
	MinimumMetric = 1
	MaximumMetric = 16776960
)

// Kinds of link metric in a LINK_METRIC TLV (RFC 7181 section 13.3.2): of the link or of the best link to
// that neighbour, and the direction as seen by the sender.
const (
	IncomingLink      = 0x8
	OutgoingLink      = 0x4
	IncomingNeighbour = 0x2
	OutgoingNeighbour = 0x1
)

// MetricCode is the 12-bit code of the least metric that is not less than metric (RFC 7181 section 6.2).
func MetricCode(metric uint32) uint16 {
	metric = min(max(metric, MinimumMetric), MaximumMetric)
	v := metric + 256
	exponent := bits.Len32(v) - 9
	// (257+b)·2^a − 256 reaches the next power of two within the exponent below it.
	if v == 1<<(exponent+8) {
		exponent--
	}
	mantissa := (v + 1<<exponent - 1) >> exponent
	return uint16(exponent)<<8 | uint16(mantissa-257)
}

// MetricOf a code: (257+b)·2^a − 256, where a is the high four of its bits and b the low eight.
func MetricOf(code uint16) uint32 {
	return (257+uint32(code&0xff))<<(code>>8&0xf) - 256
}

// MetricValue is the value of a LINK_METRIC TLV.
func MetricValue(kinds uint8, metric uint32) []byte {
	code := MetricCode(metric)
	return []byte{kinds<<4 | uint8(code>>8), uint8(code)}
}

// ReadMetric reads the value of a LINK_METRIC TLV.
func ReadMetric(value []byte) (kinds uint8, metric uint32, ok bool) {
	if len(value) != 2 {
		return 0, 0, false
	}
	return value[0] >> 4, MetricOf(uint16(value[0]&0xf)<<8 | uint16(value[1])), true
}
