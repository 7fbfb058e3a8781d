package waveforms

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// figures of one direction of a link.
type figures struct {
	bitsPerSecond float64
	delay         time.Duration
	loss          float64
}

// published are the link profiles of the experiments that the platform is for, by waveform.
var published = map[string]struct{ link, downlink figures }{
	"baseline":           {link: figures{1e9, time.Millisecond, 0}}, // over 100 Mbit/s, about 1 ms
	"tactical-1":         {link: figures{9.8e3, 100 * time.Millisecond, 0.01}},
	"tactical-2":         {link: figures{9.8e3, 100 * time.Millisecond, 0.1}},
	"cnr-1":              {link: figures{9.6e3, 100 * time.Millisecond, 0.01}},
	"cnr-10":             {link: figures{9.6e3, 100 * time.Millisecond, 0.1}},
	"satcom":             {link: figures{250e3, 550 * time.Millisecond, 0}},
	"line-of-sight":      {link: figures{2e6, 5 * time.Millisecond, 0}},
	"wifi-1":             {link: figures{2e6, 100 * time.Millisecond, 0.01}},
	"wifi-2":             {link: figures{2e6, 100 * time.Millisecond, 0.2}},
	"edge":               {link: figures{50e3, 200 * time.Millisecond, 0}, downlink: figures{200e3, 200 * time.Millisecond, 0}},
	"low-band-5g":        {link: figures{100e6, 20 * time.Millisecond, 0}},
	"tactical-broadband": {link: figures{2e6, 100 * time.Millisecond, 0.01}},
	"nbwf":               {link: figures{16e3, 500 * time.Millisecond, 0}},
	// Chosen, with the rates of their standards.
	"lte": {link: figures{10e6, 25 * time.Millisecond, 0}, downlink: figures{30e6, 25 * time.Millisecond, 0}},
	"hf":  {link: figures{2400, 1200 * time.Millisecond, 0.05}},
}

// radio is what the experiments publish of a radio; 0 for what they do not.
type radio struct {
	hertz, bandwidthHertz, bitsPerSecond float64
	frames, slots                        int32
	slot, overhead                       time.Duration
	rates                                []float64
}

var publishedRadios = map[string]radio{
	"rfpipe-wideband": {hertz: 300e6, bandwidthHertz: 250e3, bitsPerSecond: 175e3},
	"tdma-wideband": {hertz: 300e6, bandwidthHertz: 250e3, bitsPerSecond: 1e6, frames: 8, slots: 24, slot: 5 * time.Millisecond, overhead: 3 * time.Microsecond,
		rates: []float64{1e6, 500e3, 380e3}},
	"group-net":  {bandwidthHertz: 1e6, bitsPerSecond: 1e6, rates: []float64{1e6, 500e3, 380e3}},
	"leader-net": {bandwidthHertz: 25e3, bitsPerSecond: 15e3},
	"lora-sf7":   {bandwidthHertz: 125e3, bitsPerSecond: 5470},
	"lora-sf9":   {bandwidthHertz: 125e3, bitsPerSecond: 1760},
	"lora-sf12":  {bandwidthHertz: 125e3, bitsPerSecond: 250},
}

// compareRadio holds a radio against what is published of it, and its curve against the rates that it has.
func compareRadio(t *testing.T, w *v1alpha1.WaveformSpec, want radio) {
	t.Helper()
	got, pcr := radio{}, ""
	if m := w.RFPipe; m != nil {
		got, pcr = radio{hertz: m.PHY.Frequency.Hertz(), bandwidthHertz: m.PHY.Bandwidth.Hertz(), bitsPerSecond: m.Rate.BitsPerSecond()}, m.PCR
	}
	if m := w.TDMA; m != nil {
		got, pcr = radio{hertz: m.PHY.Frequency.Hertz(), bandwidthHertz: m.PHY.Bandwidth.Hertz(), bitsPerSecond: m.Rate.BitsPerSecond()}, m.PCR
		if want.slot != 0 {
			got.frames, got.slots, got.slot, got.overhead = m.Structure.Frames, *m.Structure.Slots, m.Structure.SlotDuration.Std(), m.Structure.SlotOverhead.Std()
		}
		for _, rate := range m.AdaptiveRates {
			got.rates = append(got.rates, rate.Rate.BitsPerSecond())
		}
	}
	if want.hertz == 0 {
		got.hertz = 0
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v; want %+v", got, want)
	}
	curve, err := phy.ParsePCR([]byte(pcr))
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range append(got.rates, got.bitsPerSecond) {
		if far, near := curve.Completion(-1, 900, rate), curve.Completion(18, 900, rate); far != 0 || near != 1 {
			t.Errorf("at %v bit/s %v of the frames arrive at -1 dB and %v at 18 dB; want none and all", rate, far, near)
		}
	}
}

func TestTheLibraryHasThePublishedLinkProfiles(t *testing.T) {
	entries, err := Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := Files.ReadFile(entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			var w v1alpha1.Waveform
			if err := yaml.UnmarshalStrict(text, &w); err != nil {
				t.Fatal(err)
			}
			if want, ok := publishedRadios[name]; ok {
				compareRadio(t, &w.Spec, want)
				return
			}
			want, ok := published[name]
			if !ok || w.Name != name || w.Kind != "Waveform" {
				t.Fatalf("%s is %s %s; want a Waveform of the file's name and among the published profiles", entry.Name(), w.Kind, w.Name)
			}
			compare(t, "link", w.Spec.Link, want.link)
			compare(t, "downlink", w.Spec.Downlink, want.downlink)
		})
	}
	if want := len(published) + len(publishedRadios); len(entries) != want {
		t.Errorf("%d waveforms; want the %d published profiles", len(entries), want)
	}
}

// compare holds a link against its figures; none are wanted where there is to be no link.
func compare(t *testing.T, field string, l *v1alpha1.LinkModel, want figures) {
	t.Helper()
	if l == nil {
		if want != (figures{}) {
			t.Errorf("%s is missing; want %+v", field, want)
		}
		return
	}
	if l.Rate == nil {
		t.Fatalf("%s has no rate; want %v bit/s", field, want.bitsPerSecond)
	}
	if got := (figures{l.Rate.BitsPerSecond(), l.Delay.Std(), l.Loss.Fraction()}); got != want {
		t.Errorf("%s is %+v; want %+v", field, got, want)
	}
	if l.Limit != 1000 {
		t.Errorf("%s holds %d frames; want the default queue of 1000", field, l.Limit)
	}
	if rest := (v1alpha1.LinkModel{Rate: l.Rate, Delay: l.Delay, Loss: l.Loss, Limit: l.Limit}); *l != rest {
		t.Errorf("%s has more than rate, delay, loss and limit: %+v", field, *l)
	}
}
