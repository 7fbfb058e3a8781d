package units

import (
	"math"
	"testing"
)

func TestQuantitiesOfRadios(t *testing.T) {
	for _, c := range []struct {
		text  string
		parse func(string) (float64, error)
		want  float64
	}{
		{"300MHz", ParseFrequency, 300e6}, {"250kHz", ParseFrequency, 250e3}, {"2.347GHz", ParseFrequency, 2.347e9}, {"50Hz", ParseFrequency, 50},
		{"37dBm", ParsePower, 37}, {"-3.5dBm", ParsePower, -3.5}, {"1W", ParsePower, 30}, {"100mW", ParsePower, 20}, {"1kW", ParsePower, 60},
		{"2dBi", ParseGain, 2}, {"-1.5dBi", ParseGain, -1.5}, {"4dB", ParseDecibel, 4}, {"-9dB", ParseDecibel, -9},
		{"-9.156418", ParseDegrees, -9.156418}, {"120m", ParseMetres, 120}, {"1.5km", ParseMetres, 1500}, {"-3m", ParseMetres, -3},
		{"1.5m/s", ParseSpeed, 1.5}, {"36km/h", ParseSpeed, 10}, {"9kn", ParseSpeed, 4.63},
	} {
		got, err := c.parse(c.text)
		if err != nil || math.Abs(got-c.want) > 1e-9*max(1, math.Abs(c.want)) {
			t.Errorf("%q = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestWhatIsNoQuantityOfARadioIsRefused(t *testing.T) {
	for text, parse := range map[string]func(string) (float64, error){
		"300": ParseFrequency, "0MHz": ParseFrequency, "-1Hz": ParseFrequency, "37": ParsePower, "0W": ParsePower, "1e3dBm": ParsePower,
		"2dB": ParseGain, "4dBm": ParseDecibel, "--4dB": ParseDecibel, "NaN": ParseDegrees, "": ParseDegrees, "12": ParseMetres,
		"5": ParseSpeed, "0m/s": ParseSpeed, "-1kn": ParseSpeed,
	} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q = %v, want an error", text, got)
		}
	}
}
