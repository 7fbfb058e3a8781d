// Package units reads and writes the quantities of experiments, each with its unit.
package units

import (
	"fmt"
	"strconv"
	"strings"
)

var dataRateUnits = []scaled{{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"bit", 1}} // the longer suffixes first: "kbit" also ends in "bit"

// ParseDataRate reads a rate such as 9.8kbit and returns bits per second. k is 1000, as in tc(8).
func ParseDataRate(s string) (bitsPerSecond float64, err error) {
	if v, ok := parseScaled(s, dataRateUnits); ok {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a data rate: want a number with the unit bit, kbit, Mbit or Gbit, such as 9.8kbit", s)
}

// ParsePercent reads a share such as 1% and returns it as a fraction from 0 to 1.
func ParsePercent(s string) (fraction float64, err error) {
	number, found := strings.CutSuffix(s, "%")
	v, err := parseNumber(number)
	if !found || err != nil || v > 100 {
		return 0, fmt.Errorf("%q is not a percentage: want a number from 0 to 100 with a percent sign, such as 0.5%%", s)
	}
	return v / 100, nil
}

// parseNumber accepts plain decimals only: strconv alone would accept signs, exponents, NaN and hex.
func parseNumber(s string) (float64, error) {
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a plain decimal number", s)
	}
	return strconv.ParseFloat(s, 64)
}
