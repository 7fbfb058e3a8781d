package validate

import (
	"strings"
	"testing"
)

func TestWhatTheOperatorWouldNotAcceptIsAWarningWithItsLine(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: apart}
spec:
  duration: 1m
  networks:
  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
  - {name: lan, waveform: baseline, subnet: 198.18.1.0/24}
  apps:
  - {name: hub, mosquitto: {}}
  - name: bft
    publisher: {protocol: mqtt, to: hub, period: 2s}
  nodes:
  - {name: a, networks: [wan], apps: [hub]}
  - {name: b, networks: [lan], apps: [bft]}
`
	findings := judgeText(t, text)
	if len(findings) != 1 || !findings[0].Warning || findings[0].Line != 12 || findings[0].Path != "spec.apps[1].publisher.to" ||
		!strings.Contains(findings[0].Message, "node b has no network in common with the broker's node a") {
		t.Errorf("findings:\n%s\nwant one warning about bft's broker", join(findings))
	}
	if together := judgeText(t, strings.Replace(text, "networks: [lan]", "networks: [lan, wan]", 1)); len(together) != 0 {
		t.Errorf("findings:\n%s\nwant none once they share a network", join(together))
	}
}
