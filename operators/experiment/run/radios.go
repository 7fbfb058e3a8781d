package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/run/live"
	"vignette.dev/vignette/operators/experiment/scope"
)

const (
	// gracePeriod is how long a trouble must last before it is recorded, because radiod or the server may just be restarting.
	gracePeriod = 15 * time.Second
	// IncidentRadioTrouble is for radios that do not work on a host.
	IncidentRadioTrouble = "RadioTrouble"
	// IncidentRadioSilenced is for a network that somebody has switched off.
	IncidentRadioSilenced = "RadioSilenced"
)

// troubleTracker remembers since when radios do not work, or guests are silent, by experiment and place.
type troubleTracker struct {
	mu    sync.Mutex
	since map[types.UID]map[string]time.Time
}

// lasting returns the troubles that an experiment has had for gracePeriod, and since when. It forgets troubles that ended.
func (t *troubleTracker) lasting(experiment types.UID, now time.Time, troubles map[string]string) map[string]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(troubles) == 0 {
		delete(t.since, experiment)
		return nil
	}
	before, lasting := t.since[experiment], map[string]time.Time{}
	noted := map[string]time.Time{}
	for place := range troubles {
		noted[place] = now
		if since, known := before[place]; known {
			noted[place] = since
		}
		if now.Sub(noted[place]) >= gracePeriod {
			lasting[place] = noted[place]
		}
	}
	if t.since == nil {
		t.since = map[types.UID]map[string]time.Time{}
	}
	t.since[experiment] = noted
	return lasting
}

func (t *troubleTracker) forget(experiment types.UID) { t.lasting(experiment, time.Time{}, nil) }

// checkRadioNetworks fails a run whose radio networks somebody changed, and records radios that do not work. It asks the
// API server before it fails a run, because the cache may be stale.
func (r *Runner) checkRadioNetworks(ctx context.Context, s *scope.Scope, state runapi.State) error {
	networks, err := r.Objects.RadioNetworks(ctx, s)
	if err != nil {
		return err
	}
	if reason, _ := networkTrouble(s, networks, state.Plan); reason != "" {
		if networks, err = r.Objects.Uncached().RadioNetworks(ctx, s); err != nil {
			return err
		}
	}
	if reason, message := networkTrouble(s, networks, state.Plan); reason != "" {
		s.Fail(reason, "%s", message)
		return nil
	}
	if s.Experiment.Status.T0 == nil || s.Elapsed() < 0 {
		return nil
	}
	return r.recordRadioTroubles(ctx, s, state, networks)
}

// networkTrouble returns why a run cannot continue with its radio networks: one is deleted, changed or refused by radiod.
func networkTrouble(s *scope.Scope, networks []v1alpha1.RadioNetwork, plan runapi.Plan) (reason, message string) {
	for _, network := range s.Experiment.Spec.Networks {
		i := slices.IndexFunc(networks, func(n v1alpha1.RadioNetwork) bool { return n.Spec.Network == network.Name })
		if i < 0 {
			return scope.ReasonRadioNetworkDeleted, fmt.Sprintf("RadioNetwork %s was deleted during the run: the radios of network %s are gone",
				render.RadioNetworkName(s.Experiment, network.Name), network.Name)
		}
		if reason, message := nodes.RadioRefusal(&networks[i]); reason != "" {
			return reason, message
		}
		if what := changedField(s, &networks[i], plan); what != "" {
			return scope.ReasonRadioNetworkChanged, fmt.Sprintf("%s of RadioNetwork %s was changed by somebody else during the run", what, networks[i].Name)
		}
	}
	return "", ""
}

// changedField names the field of a network's spec that somebody else has changed. Most fields are immutable.
func changedField(s *scope.Scope, network *v1alpha1.RadioNetwork, plan runapi.Plan) string {
	if plan.T0 == nil || s.Experiment.Status.T0 == nil || s.Elapsed() < 0 { // before T0 the network may have none, or a postponed one
		return ""
	}
	if t0 := network.Spec.T0; t0 != nil && !t0.Equal(s.Experiment.Status.T0) { // a missing one is set again
		return "spec.t0"
	}
	for _, want := range render.Changes(s.Experiment, network.Spec.Network) {
		if !live.HasChange(&network.Spec, want.RadioChange, time.Duration(want.AtNanoseconds)) {
			return "spec.changes"
		}
	}
	for _, planned := range plan.LiveChanges {
		for _, change := range planned.Changes {
			if change.Network == network.Spec.Network && !live.HasChange(&network.Spec, change, time.Duration(planned.AtNanoseconds)) {
				return "spec.changes"
			}
		}
	}
	return ""
}

// recordRadioTroubles records hosts whose radios have not worked for a while and silenced networks, each once.
func (r *Runner) recordRadioTroubles(ctx context.Context, s *scope.Scope, state runapi.State, networks []v1alpha1.RadioNetwork) error {
	troubles := map[string]string{}
	for i := range networks {
		maps.Copy(troubles, troublesOf(s, &networks[i]))
	}
	for place, since := range r.radioTroubles.lasting(s.Experiment.UID, s.Now, troubles) {
		incident := runapi.Incident{What: IncidentRadioTrouble, FromSeconds: s.SecondsAfterT0(since), Reason: place + ": " + troubles[place]}
		if err := r.recordOnce(ctx, s, state, incident, place+": "); err != nil {
			return err
		}
	}
	for i := range networks {
		network := &networks[i]
		if network.Spec.Silent {
			reason := fmt.Sprintf("spec.silent of RadioNetwork %s is true: the radios of network %s send and receive nothing", network.Name, network.Spec.Network)
			incident := runapi.Incident{What: IncidentRadioSilenced, FromSeconds: s.Elapsed().Seconds(), Reason: reason}
			if err := r.recordOnce(ctx, s, state, incident, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordOnce records an incident, unless there is one of the same kind whose reason has the same begin.
func (r *Runner) recordOnce(ctx context.Context, s *scope.Scope, state runapi.State, incident runapi.Incident, begin string) error {
	if hasIncident(state, incident.What, begin) {
		return nil
	}
	if err := r.Record.Incident(ctx, string(s.Experiment.UID), incident); err != nil {
		return err
	}
	s.WarningEvent(incident.What, "%.1f s after T0: %s", incident.FromSeconds, incident.Reason)
	s.RequeueAfter(scope.PollInterval)
	return nil
}

func hasIncident(state runapi.State, what, begin string) bool {
	return slices.ContainsFunc(state.Incidents, func(i runapi.Incident) bool { return i.What == what && strings.HasPrefix(i.Reason, begin) })
}

// radioTroubles are a network's troubles by place: the messages of hosts, and living nodes without a radio.
func troublesOf(s *scope.Scope, network *v1alpha1.RadioNetwork) map[string]string {
	troubles, attached, living := map[string]string{}, 0, 0
	for _, host := range network.Status.Hosts {
		attached += int(host.Attached)
		if host.Message != "" {
			troubles[fmt.Sprintf("network %s on host %s", network.Spec.Network, host.Host)] = scope.Shorten(host.Message)
		}
	}
	for _, member := range network.Spec.Members {
		if pod := s.Pods[member.Node]; pod != nil && pod.UID == member.PodUID && nodes.LossOf(member.Node, pod) == nil {
			living++
		}
	}
	if attached < living {
		troubles["network "+network.Spec.Network] = fmt.Sprintf("radiod has the radios of %d of %d running nodes", attached, living)
	}
	return troubles
}
