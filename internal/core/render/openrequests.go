package render

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps/messaging"
)

// openRequestWarnings are about requests whose end the run does not wait for: results have them as outstanding.
func openRequestWarnings(in Input, compiled *timeline.Timeline) field.ErrorList {
	return append(timeoutWarnings(in, compiled), drainWarnings(in)...)
}

// timeoutWarnings are about timeouts that even the first request does not come to.
func timeoutWarnings(in Input, compiled *timeline.Timeline) (warnings field.ErrorList) {
	if compiled == nil || compiled.Live() {
		return nil
	}
	first := map[string]time.Duration{}
	for _, action := range compiled.Actions { // in order of time
		for _, target := range action.Targets {
			if _, known := first[target.App]; !known && action.Verb == runapi.VerbStart {
				first[target.App] = time.Duration(action.AtNanoseconds)
			}
		}
	}
	for i, app := range in.Experiment.Spec.Apps {
		start, starts := first[app.Name]
		left := compiled.Duration - start + in.Experiment.Spec.Drain.Max.Std()
		m := app.Messaging
		if !starts || m == nil || !m.Sends() || !awaitsResponses(m) || m.Timeout.Std() <= left {
			continue
		}
		words := fmt.Sprintf("no request times out: from the app's start to the longest end of the drain are %s, and requests without a response are outstanding then. Want %[1]s at most", wording.Time(left))
		if m.Via != "" {
			words += ", also as the deadline of the proxy"
		}
		warnings = append(warnings, field.Invalid(field.NewPath("spec", "apps").Index(i).Child("messaging", "timeout"), m.Timeout, words))
	}
	return warnings
}

// drainWarnings are about a drain that may end between two attempts of a request.
func drainWarnings(in Input) field.ErrorList {
	quiet, longest, repeats := in.Experiment.Spec.Drain.QuietFor, time.Duration(0), ""
	for _, app := range in.Experiment.Spec.Apps {
		if between := betweenAttempts(app); between > longest && len(in.Topology.NodesRunning(app.Name)) > 0 {
			longest, repeats = between, app.Name
		}
	}
	if longest < quiet.Std() || longest == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "drain", "quietFor"), quiet, fmt.Sprintf(
		"app %s repeats a request up to %s after the last attempt: the drain may end in between, with requests outstanding. Want more than that, and max no shorter", repeats, wording.Time(longest)))}
}

// betweenAttempts is the longest time between two attempts of an app's request; 0 if it does not repeat any itself.
func betweenAttempts(app v1alpha1.App) time.Duration {
	if p := app.Proxy; p != nil && p.Peer != "" {
		return time.Duration(proxyconfig.Config{}.WithDefaults().Retry.MaxSeconds * float64(time.Second))
	}
	m := app.Messaging
	if m == nil || m.Transport != v1alpha1.TransportCoAP || !m.Sends() || !awaitsResponses(m) {
		return 0
	}
	o := messaging.Settings(app).CoAP.WithDefaults()
	if o.NonConfirmable || *o.MaxRetransmit == 0 {
		return 0
	}
	last := o.ACKTimeoutSeconds * o.ACKRandomFactor * math.Exp2(float64(*o.MaxRetransmit-1))
	return time.Duration(min(last, m.Timeout.Std().Seconds()) * float64(time.Second))
}

// awaitsResponses reports whether requests of a service end with a response or a failure.
func awaitsResponses(m *v1alpha1.Messaging) bool { return m.WantsReceipt() && !m.Multicast }
