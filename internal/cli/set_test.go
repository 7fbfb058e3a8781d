package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// radioCluster is a live cluster with a network of each radio model, in place and by name.
func radioCluster() *v1alpha1.Experiment {
	e := liveCluster()
	e.Spec.Networks = append(e.Spec.Networks,
		v1alpha1.Network{Name: "vhf", Waveform: "wideband", Subnet: "198.18.1.0/24", Radios: []v1alpha1.Radio{
			{Nodes: []string{"hq"}, TransmitPower: ptr(v1alpha1.Power("50W"))},
			{Nodes: []string{"veh-1", "veh-2"}, AntennaGain: ptr(v1alpha1.Gain("2dBi")), NoiseFigure: ptr(v1alpha1.Decibel("6dB"))}}},
		v1alpha1.Network{Name: "pipe", Subnet: "198.18.2.0/24", RFPipe: &v1alpha1.RFPipeModel{
			PHY: v1alpha1.PHY{Frequency: "300MHz", TransmitPower: "37dBm", AntennaGain: "0dBi", NoiseFigure: "4dB"}, Rate: "175kbit", Delay: "5ms", Jitter: "0ms"}},
		v1alpha1.Network{Name: "slots", Subnet: "198.18.3.0/24", TDMA: &v1alpha1.TDMAModel{
			PHY: v1alpha1.PHY{Frequency: "300MHz", TransmitPower: "5W", NoiseFigure: "4dB"}, Rate: "1Mbit", Schedule: "<emane-tdma-schedule/>"}},
		v1alpha1.Network{Name: "emu", Engine: v1alpha1.EngineEMANE, Subnet: "198.18.4.0/24", RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit"}},
		v1alpha1.Network{Name: "sinr", Subnet: "198.18.5.0/24", TDMA: &v1alpha1.TDMAModel{PHY: v1alpha1.PHY{TransmitPower: "5W"}, Rate: "1Mbit",
			AdaptiveRates: []v1alpha1.TDMARate{{Rate: "1Mbit", SINR: "18dB"}, {Rate: "380kbit", SINR: "9dB"}}}},
	)
	for i := range e.Spec.Nodes {
		e.Spec.Nodes[i].Networks = append(e.Spec.Nodes[i].Networks, "vhf", "pipe", "slots", "emu", "sinr")
	}
	return e
}

func radioPlatform() *platform {
	p := newPlatform()
	p.state.Plan.Waveforms["wideband"] = v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{
		PHY: v1alpha1.PHY{Frequency: "300MHz", TransmitPower: "37dBm", NoiseFigure: "4dB"}, Rate: "1Mbit", Interference: v1alpha1.InterferenceAll}}
	return p
}

// made is the change that a command line makes, and what it says.
func made(t *testing.T, from, to, network string, arguments ...string) (v1alpha1.RadioChange, string, error) {
	t.Helper()
	w, err := parseWish(network, from, to, arguments)
	if err != nil {
		return v1alpha1.RadioChange{}, "", err
	}
	p := radioPlatform()
	var out bytes.Buffer
	err = p.cluster(t, radioCluster()).set(t.Context(), "", w, &out)
	var changes v1alpha1.LiveChangeList
	if listErr := p.kube.List(t.Context(), &changes); listErr != nil {
		t.Fatal(listErr)
	}
	if err != nil {
		if len(changes.Items) > 0 {
			t.Errorf("%v was made although it was refused", changes.Items)
		}
		return v1alpha1.RadioChange{}, out.String(), err
	}
	if len(changes.Items) != 1 || changes.Items[0].Spec.Experiment != "bft-live" || len(changes.Items[0].Spec.Changes) != 1 {
		t.Fatalf("changes %v; want one of bft-live", changes.Items)
	}
	return changes.Items[0].Spec.Changes[0], out.String(), nil
}

func TestSetMakesAChangeAndSaysFromWhenItHolds(t *testing.T) {
	const holds = " holds from 12:01:02.500Z, T0 + 62.500 s\n"
	file := filepath.Join(t.TempDir(), "slots.xml")
	if err := os.WriteFile(file, []byte("<emane-tdma-schedule>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from, to, arguments, says string
		wants                     v1alpha1.RadioChange
	}{
		"a link from group to group": {"hq", "veh", "wan delay=200ms rate=9.6kbit loss=0% limit=10 reorder=true", "wan: --from hq --to veh rate=9.6kbit delay=200ms reorder=true loss=0% limit=10",
			v1alpha1.RadioChange{From: "hq", To: "veh", Link: &v1alpha1.LinkPatch{Rate: ptr(v1alpha1.DataRate("9.6kbit")), Delay: ptr(v1alpha1.Duration("200ms")),
				Reorder: ptr(true), Loss: ptr(v1alpha1.Percent("0%")), Limit: ptr(int32(10))}}},
		"rate and delay of a link in place": {"", "", "lan rate=64kbit delay=1ms", "lan: rate=64kbit delay=1ms",
			v1alpha1.RadioChange{Link: &v1alpha1.LinkPatch{Rate: ptr(v1alpha1.DataRate("64kbit")), Delay: ptr(v1alpha1.Duration("1ms"))}}},
		"rate and delay of a radio": {"", "", "pipe rate=64kbit delay=1ms", "pipe: rate=64kbit delay=1ms",
			v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: ptr(v1alpha1.DataRate("64kbit")), Delay: ptr(v1alpha1.Duration("1ms"))}}},
		"rate of a named waveform that is a radio": {"", "", "vhf rate=64kbit", "vhf: rate=64kbit",
			v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: ptr(v1alpha1.DataRate("64kbit"))}}},
		"radio silence of one node": {"veh-1", "", "vhf transmit=false", "vhf: --from veh-1 transmit=false",
			v1alpha1.RadioChange{From: "veh-1", Radio: &v1alpha1.RadioPatch{Transmit: ptr(false)}}},
		"all that one radio has": {"hq", "", "pipe transmitPower=-3dBm antennaGain=2dBi noiseFigure=6dB frequency=310MHz transmit=true rate=1Mbit",
			"pipe: --from hq rate=1Mbit frequency=310MHz transmitPower=-3dBm antennaGain=2dBi noiseFigure=6dB transmit=true",
			v1alpha1.RadioChange{From: "hq", Radio: &v1alpha1.RadioPatch{TransmitPower: ptr(v1alpha1.Power("-3dBm")), AntennaGain: ptr(v1alpha1.Gain("2dBi")), NoiseFigure: ptr(v1alpha1.Decibel("6dB")),
				Frequency: ptr(v1alpha1.Frequency("310MHz")), Transmit: ptr(true), Rate: ptr(v1alpha1.DataRate("1Mbit"))}}},
		"delay of one node, which EMANE has": {"hq", "", "emu delay=1ms", "emu: --from hq delay=1ms",
			v1alpha1.RadioChange{From: "hq", Radio: &v1alpha1.RadioPatch{Delay: ptr(v1alpha1.Duration("1ms"))}}},
		"a schedule": {"", "", "slots schedule=@" + file, "slots: schedule=@" + file, v1alpha1.RadioChange{Schedule: "<emane-tdma-schedule>"}},
		"a jammer at a place": {"", "", "slots jammer=noise,power=100W,latitude=58.19,longitude=-7.98,altitude=20m,frequency=300MHz,bandwidth=1MHz",
			"slots: jammer=noise,power=100W,latitude=58.19,longitude=-7.98,altitude=20m,frequency=300MHz,bandwidth=1MHz",
			v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "noise", Power: ptr(v1alpha1.Power("100W")), Position: &v1alpha1.Position{Latitude: "58.19", Longitude: "-7.98", Altitude: "20m"},
				Frequency: ptr(v1alpha1.Frequency("300MHz")), Bandwidth: ptr(v1alpha1.Frequency("1MHz"))}}},
		"a jammer by its pathloss, without the unit": {"", "", "vhf jammer=noise,pathloss=90,power=20dBm", "vhf: jammer=noise,power=20dBm,pathloss=90dB",
			v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "noise", Power: ptr(v1alpha1.Power("20dBm")), Pathloss: ptr(v1alpha1.Decibel("90dB"))}}},
		"no jammer any more":         {"", "", "vhf jammer=noise,off", "vhf: jammer=noise,off", v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "noise", Silent: true}}},
		"silence of a radio network": {"", "", "pipe silent=true", "pipe: silent=true", v1alpha1.RadioChange{Silent: ptr(true)}},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := strings.Fields(c.arguments)
			change, out, err := made(t, c.from, c.to, arguments[0], arguments[1:]...)
			if err != nil {
				t.Fatal(err)
			}
			if out != c.says+holds {
				t.Errorf("says %q; want %q", out, c.says+holds)
			}
			c.wants.Network = arguments[0]
			if diff := cmp.Diff(c.wants, change); diff != "" {
				t.Errorf("the change (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryKeyOfSetIsReadAndShownAlike(t *testing.T) {
	values := map[string]string{"rate": "2Mbit", "delay": "1ms", "jitter": "2ms", "jitterDistribution": "paretonormal", "jitterCorrelation": "25%", "reorder": "false", "loss": "1%", "lossCorrelation": "30%", "corrupt": "0.1%",
		"gilbertElliott": "1%,25%,90%,0.1%", "duplicate": "2%", "limit": "5", "limitBytes": "6000", "silent": "true",
		"frequency": "300MHz", "transmitPower": "5W", "antennaGain": "-2dBi", "noiseFigure": "4dB", "transmit": "false", "schedule": "@slots.xml",
		"jammer": "noise,power=1W,latitude=58.19,longitude=7.98,altitude=20m,frequency=1GHz,bandwidth=1MHz"}
	for _, model := range models {
		for _, key := range keyNames(model) {
			w := &wish{network: "net", assignments: []assignment{{key, values[key]}}}
			change, err := w.as(model)
			if got, want := strings.Join(describeChange(change), " "), key+"="+values[key]; err != nil || got != want {
				t.Errorf("%s of %s: %v, shown as %s", want, model, err, got)
			}
			if (change.Link != nil) == (model != v1alpha1.ModelLink) && key != "silent" {
				t.Errorf("%s of %s makes %+v", key, model, change)
			}
		}
	}
}

func TestSetRefusesWhatItCannotReadBeforeItAsksTheCluster(t *testing.T) {
	for name, c := range map[string]struct{ flags, arguments, want string }{
		"no value":                        {"", "delay", "want KEY=VALUE, such as delay=200ms"},
		"no such key":                     {"", "dealy=1s", "there is no key dealy: want one of rate, delay, jitter, jitterDistribution, jitterCorrelation, reorder, loss, lossCorrelation, gilbertElliott, duplicate, corrupt, limit, limitBytes, silent, frequency, transmitPower"},
		"no number of frames":             {"", "limit=many", "want a number of frames"},
		"no number of bytes":              {"", "limitBytes=1k", "want a number of bytes"},
		"neither true nor false":          {"", "reorder=perhaps", "want true or false"},
		"half a loss model":               {"", "gilbertElliott=1%", "want goodToBad,badToGood"},
		"an empty value":                  {"", "rate=", `"rate=": want a value`},
		"a key twice":                     {"", "delay=1s delay=2s", "delay is given twice"},
		"correlated bursts":               {"", "lossCorrelation=20% gilbertElliott=1%,9%", "lossCorrelation is for loss; gilbertElliott has bursts of its own"},
		"two loss models":                 {"", "loss=1% gilbertElliott=1%,9%", "two models of the same thing"},
		"silence of some":                 {"hq", "silent=true", "silent is for the whole network: leave out --from and --to"},
		"keys of two models":              {"", "loss=1% transmit=false", "loss is for networks of the model link, and transmit for rfpipe and tdma and emane: no network has both"},
		"keys of two radio models":        {"", "rate=1Mbit delay=1ms schedule=@x", "delay is for networks of the model link and rfpipe, and schedule for tdma: no network has both"},
		"a power without its unit":        {"", "transmitPower=37", `"transmitPower=37": "37" is not a power: want a number with the unit dBm`},
		"a gain in the wrong unit":        {"", "antennaGain=2dB", `"2dB" is not a gain: want a number with the unit dBi`},
		"a noise figure without its unit": {"", "noiseFigure=4", `"4" is not a ratio: want a number with the unit dB`},
		"no frequency":                    {"", "frequency=0Hz", `"0Hz" is not a frequency: want a number above zero`},
		"neither on nor off":              {"", "transmit=off", `"transmit=off": want true or false`},
		"a radio's receivers":             {"/veh", "transmit=false", "--to veh: a radio's frames reach everybody in range, not some receivers alone: leave out --to"},
		"a schedule of some":              {"hq", "schedule=@x", "--from hq: a schedule is for the whole network: leave out --from"},
		"a jammer of some":                {"hq", "transmit=false jammer=noise,off", "--from hq: a jammer is for the whole network: leave out --from"},
		"a schedule in place":             {"", "schedule=<x/>", "want @ and the name of an EMANE TDMA schedule file, such as @slots.xml"},
		"a schedule of no file":           {"", "schedule=@", "want @ and the name"},
		"a jammer without a name":         {"", "jammer=power=1W", "want the jammer's name first, such as jammer=noise,power=100W,pathloss=90dB"},
		"a jammer without anything":       {"", "jammer=noise", "a jammer needs power, such as power=100W; jammer=noise,off ends it"},
		"a jammer nowhere":                {"", "jammer=noise,power=1W", "a jammer needs latitude and longitude, or pathloss, which is that to every node"},
		"a jammer that is in two places":  {"", "jammer=noise,power=1W,pathloss=90dB,latitude=1,longitude=2", "a jammer has a position or a pathloss to every node: give one of them"},
		"a jammer on a circle":            {"", "jammer=noise,power=1W,latitude=1,altitude=3m", "a jammer's position needs both latitude and longitude"},
		"a jammer that is off and on":     {"", "jammer=noise,off,power=1W", "a jammer that goes off takes nothing else: want jammer=NAME,off"},
		"no such part of a jammer":        {"", "jammer=noise,pover=1W", "a jammer has no pover=1W: want power, latitude, longitude, altitude, pathloss, frequency, bandwidth, or off alone"},
		"a part of a jammer twice":        {"", "jammer=noise,power=1W,power=2W", "power is given twice: give it once"},
		"a jammer's power":                {"", "jammer=noise,power=1,pathloss=90dB", `power: "1" is not a power`},
		"a jammer's pathloss":             {"", "jammer=noise,power=1W,pathloss=", `pathloss: "" is not a ratio`},
		"a jammer's height":               {"", "jammer=noise,power=1W,latitude=1,longitude=2,altitude=3", `altitude: "3" is not a length`},
		"a jammer off the globe":          {"", "jammer=noise,power=1W,latitude=91,longitude=2", "latitude is 91: want degrees from -90 to 90"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to, _ := strings.Cut(c.flags, "/")
			if _, err := parseWish("net", from, to, strings.Fields(c.arguments)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v; want %s", c.arguments, err, c.want)
			}
		})
	}
}

func TestSetRefusesWhatTheNetworkDoesNotHave(t *testing.T) {
	folder := t.TempDir()
	empty, large := filepath.Join(folder, "empty.xml"), filepath.Join(folder, "large.xml")
	for file, text := range map[string]string{empty: "", large: strings.Repeat("x", mostScheduleBytes+1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const jammer = "jammer=noise,power=1W,pathloss=90dB"
	for name, c := range map[string]struct{ flags, arguments, want string }{
		"loss of a radio":            {"", "pipe loss=5%", `"loss=5%": network pipe is of the model rfpipe, which has no loss: want one of rate, delay, jitter, frequency, transmitPower, antennaGain, noiseFigure, transmit, jammer, silent`},
		"delay of slots":             {"", "vhf delay=5ms", `"delay=5ms": network vhf is of the model tdma, which has no delay: want one of rate, schedule, transmitPower, antennaGain, noiseFigure, transmit, jammer, silent`},
		"frequency of slots":         {"", "slots frequency=1MHz", "network slots is of the model tdma, which has no frequency"},
		"schedule of a pipe":         {"", "pipe schedule=@x", "network pipe is of the model rfpipe, which has no schedule"},
		"power of a link":            {"", "wan transmitPower=5W", `"transmitPower=5W": network wan is of the model link, which has no transmitPower: want one of rate, delay, jitter, jitterDistribution`},
		"jammer of a link":           {"", "lan " + jammer, "network lan is of the model link, which has no jammer"},
		"rate to some":               {"hq/veh", "pipe rate=64kbit", "--to veh: a radio's frames reach everybody in range"},
		"delay of some":              {"hq", "pipe delay=1ms", "--from hq: delay and jitter are one for all radios of a network: change them by a command of their own, without --from"},
		"jammer that nobody hears":   {"", "pipe " + jammer, "jammer=noise: network pipe counts no interference, so that a jammer disturbs nobody: its waveform wants interference OutOfBand or All"},
		"rate that the SINR decides": {"", "sinr rate=64kbit", "rate=64kbit: the radios of network sinr choose their rates by SINR, as its waveform has adaptiveRates: leave out rate"},
		"from nobody":                {"prt", "pipe transmit=false", "--from prt: there is no such group or node in experiment bft-live: want one of hq, veh"},
		"no such network":            {"", "uhf transmit=false", "there is no network uhf in experiment bft-live: want one of wan, lan, vhf, pipe, slots, emu, sinr"},
		"no such file":               {"", "slots schedule=@" + folder + "/none.xml", "none.xml: no such file or directory"},
		"a file without a text":      {"", "slots schedule=@" + empty, "empty.xml: the file is empty: want an EMANE TDMA schedule"},
		"a file that is too large":   {"", "slots schedule=@" + large, "large.xml: the file has more than the 65536 bytes that a change may have: send the slots that differ alone, without a structure"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to, _ := strings.Cut(c.flags, "/")
			arguments := strings.Fields(c.arguments)
			if _, _, err := made(t, from, to, arguments[0], arguments[1:]...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v; want %s", c.arguments, err, c.want)
			}
		})
	}
}

func TestSetSaysWhatItsKeysMeanIsNotKnownWhereTheRecordLacksTheWaveform(t *testing.T) {
	w, err := parseWish("vhf", "", "", []string{"rate=1Mbit"})
	if err != nil {
		t.Fatal(err)
	}
	err = newPlatform().cluster(t, radioCluster()).set(t.Context(), "", w, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "the record of the run lacks waveform wideband of network vhf, so that its keys are not known: vignette status -n team-nor bft-live") {
		t.Errorf("error %v; want what is missing", err)
	}
}

func TestWhatTheAPIServerRefusesOfAChangeIsSaidInTheWordsThatWereTyped(t *testing.T) {
	changes := field.NewPath("spec", "changes").Index(0)
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: "vignette.dev", Kind: "LiveChange"}, "x", field.ErrorList{
		field.Invalid(changes.Child("link", "loss"), "string", "must be a percentage"),
		field.Invalid(changes.Child("link", "gilbertElliott", "badToGood"), "string", "must be one too"),
		field.Invalid(changes.Child("jammer", "frequency"), "string", "must be a frequency"),
		field.Invalid(changes.Child("radio", "frequency"), "string", "must be another"),
		field.Invalid(changes.Child("network"), "string", "must be short"),
		field.Invalid(changes.Child("link", "delay"), "1", "spec.changes[0].link.delay in body should be at least 2 chars long"),
		field.Invalid(changes.Child("link", "delay"), "string", "must be a duration with its unit, not negative, such as 100ms, 21m or 1h30m"),
		field.Invalid(changes.Child("link", "limit"), 0, "spec.changes[0].link.limit in body should be greater than or equal to 1"),
	})
	err := explainChange(refusal, []string{"frequency=1", "loss=101%", "gilbertElliott=1%,2", "jammer=noise", "delay=1", "limit=0"})
	if want := "loss=101%: must be a percentage\ngilbertElliott=1%,2: must be one too\njammer=noise: must be a frequency\nfrequency=1: must be another\nNETWORK: must be short\n" +
		"delay=1: must be a duration with its unit, not negative, such as 100ms, 21m or 1h30m\nlimit=0: should be greater than or equal to 1"; err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestWhatTheOperatorRefusesOfAChangeIsSaidInTheWordsThatWereTyped(t *testing.T) {
	changes := field.NewPath("spec", "changes").Index(0)
	refusal := field.ErrorList{
		field.Invalid(changes.Child("link", "loss"), "a \": b", "must be a percentage"),
		field.Forbidden(changes.Child("radio", "frequency"), "the network has none"),
		field.Invalid(changes.Child("link", "limit"), 0, "must be above zero"),
		field.NotFound(changes.Child("from"), "hp"),
	}.ToAggregate().Error()
	got := withTypedNames(refusal, func(field string) string { return argumentOf(field, []string{"frequency=1MHz", "loss=a", "limit=0"}) })
	if want := "[loss=a: must be a percentage, frequency=1MHz: the network has none, limit=0: must be above zero, --from: Not found: \"hp\"]"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestWhatTheAPIServerRefusesOfACaptureIsSaidByItsFlags(t *testing.T) {
	run := &captureRun{node: "hq", capture: &v1alpha1.Capture{Spec: v1alpha1.CaptureSpec{Duration: "1ns", Filter: "ip"}}}
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: "vignette.dev", Kind: "Capture"}, "x", field.ErrorList{
		field.Invalid(field.NewPath("spec", "duration"), "1ns", "spec.duration in body should match '^x$'"),
		field.TooLong(field.NewPath("spec", "filter"), "", 1024),
	})
	err := explainRefused(refusal, "Capture", run.flagOf)
	if want := "--duration \"1ns\": must be a duration"; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "\n--filter \"ip\": ") {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestSetWithoutKeysShowsWhatTheNetworkBeganWithAndItsChanges(t *testing.T) {
	p := radioPlatform()
	jammer := &v1alpha1.Jammer{Name: "noise", Power: ptr(v1alpha1.Power("100W")), Position: &v1alpha1.Position{Latitude: "58.19", Longitude: "7.98", Altitude: "0m"}}
	p.state.Plan.LiveChanges = []runapi.PlannedLiveChange{
		{Name: "bft-live-x", AtNanoseconds: 5e9, Changes: []v1alpha1.RadioChange{{Network: "wan", Silent: ptr(true)}, {Network: "lan", Silent: ptr(true)}}},
		{Name: "bft-live-y", AtNanoseconds: 6e9, Changes: []v1alpha1.RadioChange{{Network: "vhf", From: "hq", Radio: &v1alpha1.RadioPatch{Transmit: ptr(false)}}}},
		{Name: "bft-live-z", AtNanoseconds: 60e9, Changes: []v1alpha1.RadioChange{{Network: "vhf", Jammer: jammer}, {Network: "vhf", Schedule: "<emane-tdma-schedule/>"}}},
	}
	e := radioCluster()
	e.Spec.Timeline = append(e.Spec.Timeline, v1alpha1.TimelineEntry{At: "11s", Set: []v1alpha1.RadioChange{
		{Network: "vhf", Jammer: &v1alpha1.Jammer{Name: "noise", Off: true}}, {Network: "pipe", Radio: &v1alpha1.RadioPatch{Rate: ptr(v1alpha1.DataRate("9.6kbit"))}}}})
	for network, want := range map[string][]string{
		"wan": {
			"FROM       WHAT                      HOLDS",
			"T0         waveform tactical-1       rate=9.8kbit delay=100ms loss=1% limit=1000",
			"T0         link --from hq --to veh   delay=5ms",
			"T0 + 5s    by hand, bft-live-x       silent=true",
			"T0 + 10s   timeline                  loss=3%"},
		"vhf": {
			"FROM       WHAT                     HOLDS",
			"T0         waveform wideband        rate=1Mbit transmitPower=37dBm noiseFigure=4dB",
			"T0         radios of hq             transmitPower=50W",
			"T0         radios of veh-1, veh-2   antennaGain=2dBi noiseFigure=6dB",
			"T0 + 6s    by hand, bft-live-y      --from hq transmit=false",
			"T0 + 11s   timeline                 jammer=noise,off",
			"T0 + 1m    by hand, bft-live-z      jammer=noise,power=100W,latitude=58.19,longitude=7.98",
			"T0 + 1m    by hand, bft-live-z      schedule=(22 bytes)"},
		"pipe": {
			"FROM       WHAT       HOLDS",
			"T0         rfpipe     rate=175kbit delay=5ms frequency=300MHz transmitPower=37dBm noiseFigure=4dB",
			"T0 + 11s   timeline   rate=9.6kbit"},
		"slots": {
			"FROM   WHAT   HOLDS",
			"T0     tdma   schedule=(22 bytes) noiseFigure=4dB"},
		"sinr": {
			"FROM   WHAT   HOLDS",
			"T0     tdma   transmitPower=5W"},
	} {
		t.Run(network, func(t *testing.T) {
			var out bytes.Buffer
			if err := p.cluster(t, e.DeepCopy()).showNetwork(t.Context(), "", network, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(want, "\n")+"\n", out.String()); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeysOfTheNetworksModelAreCompleted(t *testing.T) {
	const all = "rate delay jitter jitterDistribution jitterCorrelation reorder loss lossCorrelation gilbertElliott duplicate corrupt limit limitBytes silent frequency transmitPower antennaGain noiseFigure transmit jammer schedule"
	for name, c := range map[string]struct {
		p             *platform
		network, want string
	}{
		"a link in place":            {radioPlatform(), "lan", "rate delay jitter jitterDistribution jitterCorrelation reorder loss lossCorrelation gilbertElliott duplicate corrupt limit limitBytes silent"},
		"a pipe in place":            {radioPlatform(), "pipe", "rate delay jitter frequency transmitPower antennaGain noiseFigure transmit jammer silent"},
		"a named waveform":           {radioPlatform(), "vhf", "rate schedule transmitPower antennaGain noiseFigure transmit jammer silent"},
		"a waveform nobody knows of": {newPlatform(), "vhf", all},
		"no such network":            {radioPlatform(), "uhf", all},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(c.p.cluster(t, radioCluster()).keyNames(t.Context(), "", c.network), " "); got != c.want {
				t.Errorf("keys %s; want %s", got, c.want)
			}
		})
	}
	if got := strings.Join(newPlatform().cluster(t).keyNames(t.Context(), "", "vhf"), " "); got != all {
		t.Errorf("keys %s where no experiment runs; want %s", got, all)
	}
}
