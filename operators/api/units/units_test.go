package units

import "testing"

func TestParseDataRate(t *testing.T) {
	for text, want := range map[string]float64{
		"9.8kbit": 9800, "250kbit": 250e3, "2Mbit": 2e6, "1Gbit": 1e9, "300bit": 300,
	} {
		got, err := ParseDataRate(text)
		if err != nil || got != want {
			t.Errorf("ParseDataRate(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "9.8", "kbit", "-1kbit", "1e3bit", "NaNbit", "9.8kb", "0x1bit", "1.2.3bit"} {
		if got, err := ParseDataRate(text); err == nil {
			t.Errorf("ParseDataRate(%q) = %v; want an error", text, got)
		}
	}
}

func TestParsePercent(t *testing.T) {
	for text, want := range map[string]float64{"1%": 0.01, "0.5%": 0.005, "100%": 1, "0%": 0} {
		got, err := ParsePercent(text)
		if err != nil || got != want {
			t.Errorf("ParsePercent(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "%", "-1%", "101%", "1e1%"} {
		if got, err := ParsePercent(text); err == nil {
			t.Errorf("ParsePercent(%q) = %v; want an error", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("9.8kbit")
	f.Add("1%")
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := ParseDataRate(text); err == nil && !(v >= 0) {
			t.Errorf("ParseDataRate(%q) = %v: negative or not a number", text, v)
		}
		if v, err := ParsePercent(text); err == nil && !(v >= 0 && v <= 1) {
			t.Errorf("ParsePercent(%q) = %v: outside 0 to 1", text, v)
		}
	})
}
