package render

import (
	"fmt"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestATimeoutThatNoRequestComesToHasAWarning(t *testing.T) {
	const push, field = ", push: {from: [a], to: b, period: 1s}", `spec.apps[0].messaging.timeout: Invalid value: `
	for name, c := range map[string]struct {
		messaging string
		duration  v1alpha1.Duration
		want      string
	}{
		"as long as what is left":      {"timeout: 85s" + push, "60s", ""},
		"longer than that":             {"timeout: 10m" + push, "60s", field + `"10m": no request times out: from the app's start to the longest end of the drain are 1m25s, and requests without a response are outstanding then. Want 1m25s at most`},
		"via a proxy":                  {"via: near, timeout: 10m" + push, "60s", "Want 1m25s at most, also as the deadline of the proxy"},
		"of a service that sends none": {"timeout: 10m, reply: gps", "60s", ""},
		"of messages without receipts": {"timeout: 10m, receipt: false" + push, "60s", ""},
		"by multicast, without too":    {"timeout: 10m, multicast: true" + push, "60s", ""},
		"in a live cluster":            {"timeout: 10m" + push, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, "[{name: rest, messaging: {transport: http, "+c.messaging+"}}, {name: near, proxy: {peer: far}}, {name: far, proxy: {}}]",
				"[{name: a, networks: [lan], apps: [rest, near]}, {name: b, networks: [lan], apps: [rest, far]}]")
			spec := &in.Experiment.Spec
			spec.Duration, spec.Drain = c.duration, v1alpha1.Drain{Max: "30s", QuietFor: "20s"}
			spec.Timeline = []v1alpha1.TimelineEntry{{At: "5s", Start: []string{"rest"}}, {At: "10s", Stop: []string{"a/rest"}}, {At: "15s", Start: []string{"a/rest"}}}
			compiled, _ := timeline.Compile(spec, in.Topology)
			errs := timeoutWarnings(in, compiled)
			if said := fmt.Sprint(errs); (len(errs) == 0) != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("it says %v; want %q", said, c.want)
			}
		})
	}
}

func TestADrainThatEndsBetweenTwoAttemptsHasAWarning(t *testing.T) {
	const sends = "{name: own, messaging: {timeout: 60s, push: {from: [a], to: b, period: 1s}, "
	for name, c := range map[string]struct {
		app   string
		quiet v1alpha1.Duration
		want  string
	}{
		"of a proxy pair":          {"{name: own, proxy: {peer: far}}", "10s", `spec.drain.quietFor: Invalid value: "10s": app own repeats a request up to 10s after the last attempt: the drain may end in between, with requests outstanding. Want more than that, and max no shorter`},
		"of a pair, for longer":    {"{name: own, proxy: {peer: far}}", "11s", ""},
		"by CoAP":                  {sends + "transport: coap}}", "20s", "app own repeats a request up to 24s after"},
		"by CoAP, for longer":      {sends + "transport: coap}}", "25s", ""},
		"by a patient CoAP":        {sends + "transport: coap, coap: {ackTimeout: 8s, maxRetransmit: 3, ackRandomPercent: 0}}}", "32s", "up to 32s after"},
		"at the timeout at latest": {strings.Replace(sends, "60s", "15s", 1) + "transport: coap}}", "15s", "up to 15s after"},
		"by CoAP that never does":  {sends + "transport: coap, coap: {maxRetransmit: 0}}}", "5s", ""},
		"by non-confirmable CoAP":  {sends + "transport: coap, coap: {confirmable: false}}}", "5s", ""},
		"by CoAP without receipts": {sends + "transport: coap, receipt: false}}", "5s", ""},
		"by CoAP to a group":       {sends + "transport: coap, multicast: true}}", "5s", ""},
		"by HTTP":                  {sends + "transport: http}}", "5s", ""},
		"of a service":             {"{name: own, messaging: {transport: coap, timeout: 60s}}", "5s", ""},
		"of an app that none runs": {"{name: own, mosquitto: {}}, {name: spare, proxy: {peer: far}}", "5s", ""},
	} {
		t.Run(name, func(t *testing.T) {
			peer := ""
			if strings.Contains(c.app, "{name: own, proxy") {
				peer = "far"
			}
			in := inputOf(t, "["+c.app+", {name: far, proxy: {}}]", "[{name: a, networks: [lan], apps: [own]}, {name: b, networks: [lan], apps: ["+peer+"]}]")
			in.Experiment.Spec.Drain = v1alpha1.Drain{Max: "1m", QuietFor: c.quiet}
			errs := drainWarnings(in)
			if said := fmt.Sprint(errs); (len(errs) == 0) != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("it says %v; want %q", said, c.want)
			}
		})
	}
}
