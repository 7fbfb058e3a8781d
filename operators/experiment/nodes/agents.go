package nodes

import (
	"fmt"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// RadioRefusal is why a host's radiod permanently refuses a network's spec.
func RadioRefusal(network *v1alpha1.RadioNetwork) (reason, message string) {
	for _, host := range network.Status.Hosts {
		if host.Refused != "" {
			return scope.ReasonRadioRefused, fmt.Sprintf("radiod on host %s refuses network %s: %s", host.Host, network.Spec.Network, host.Refused)
		}
	}
	return "", ""
}

// FailedAgent is an agent that has failed, nil for none.
func FailedAgent(state runapi.State) *runapi.AgentState {
	for i, agent := range state.Agents {
		if agent.Phase == runapi.AgentFailed {
			return &state.Agents[i]
		}
	}
	return nil
}

// AgentFailureReason is the reason of an agent's failure. Users control agents, so only a known reason is taken over.
func AgentFailureReason(agent *runapi.AgentState) string {
	if agent.Reason == runapi.ReasonKeyNotFound {
		return scope.ReasonKeyNotFound
	}
	return scope.ReasonAppFailed
}
