package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scaled is a unit and its size in the base unit.
type scaled struct {
	suffix string
	factor float64
}

var (
	frequencyUnits = []scaled{{"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}, {"Hz", 1}} // the longer suffixes first: "kHz" also ends in "Hz"
	powerUnits     = []scaled{{"mW", 1}, {"kW", 1e6}, {"W", 1e3}}
	lengthUnits    = []scaled{{"km", 1e3}, {"m", 1}}
	speedUnits     = []scaled{{"km/h", 1 / 3.6}, {"m/s", 1}, {"kn", 1852.0 / 3600}}
)

// ParseFrequency reads a frequency such as 300MHz and returns Hz.
func ParseFrequency(s string) (hertz float64, err error) {
	if v, ok := parseScaled(s, frequencyUnits); ok && v > 0 {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a frequency: want a number above zero with the unit Hz, kHz, MHz or GHz, such as 300MHz", s)
}

// ParsePower reads a power such as 37dBm or 5W and returns dBm.
func ParsePower(s string) (dBm float64, err error) {
	if v, ok := parseSuffixed(s, "dBm"); ok {
		return v, nil
	}
	if milliwatts, ok := parseScaled(s, powerUnits); ok && milliwatts > 0 {
		return 10 * math.Log10(milliwatts), nil
	}
	return 0, fmt.Errorf("%q is not a power: want a number with the unit dBm, or above zero with mW, W or kW, such as 37dBm", s)
}

// ParseGain reads an antenna's gain such as 2dBi.
func ParseGain(s string) (dBi float64, err error) {
	if v, ok := parseSuffixed(s, "dBi"); ok {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a gain: want a number with the unit dBi, such as 2dBi", s)
}

// ParseDecibel reads a ratio such as 4dB.
func ParseDecibel(s string) (dB float64, err error) {
	if v, ok := parseSuffixed(s, "dB"); ok {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a ratio: want a number with the unit dB, such as 4dB", s)
}

// ParseDegrees reads an angle such as -9.15 in degrees.
func ParseDegrees(s string) (degrees float64, err error) {
	if v, err := parseSigned(s); err == nil {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not an angle: want a number of degrees, such as 58.19", s)
}

// ParseMetres reads a length such as 120m or 1.5km and returns metres.
func ParseMetres(s string) (metres float64, err error) {
	positive, negative := strings.CutPrefix(s, "-")
	if v, ok := parseScaled(positive, lengthUnits); ok {
		if negative {
			v = -v
		}
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a length: want a number with the unit m or km, such as 120m", s)
}

// ParseSpeed reads a speed such as 50km/h and returns metres per second.
func ParseSpeed(s string) (metresPerSecond float64, err error) {
	if v, ok := parseScaled(s, speedUnits); ok && v > 0 {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a speed: want a number above zero with the unit m/s, km/h or kn, such as 50km/h", s)
}

func parseScaled(s string, units []scaled) (value float64, ok bool) {
	for _, u := range units {
		number, found := strings.CutSuffix(s, u.suffix)
		if !found {
			continue
		}
		v, err := parseNumber(number)
		return v * u.factor, err == nil
	}
	return 0, false
}

func parseSuffixed(s, suffix string) (value float64, ok bool) {
	number, found := strings.CutSuffix(s, suffix)
	v, err := parseSigned(number)
	return v, found && err == nil
}

func parseSigned(s string) (float64, error) {
	if _, err := parseNumber(strings.TrimPrefix(s, "-")); err != nil {
		return 0, err
	}
	return strconv.ParseFloat(s, 64)
}
