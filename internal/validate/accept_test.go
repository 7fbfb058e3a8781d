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

func TestWhatOnlyTheOperatorSeesOfRadiosIsAWarningWithItsLine(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: cells}
spec:
  networks:
  - name: cell
    waveform: mast
    base: [bs]
    subnet: 198.18.0.0/24
  - {name: lan, waveform: baseline, subnet: 198.18.1.0/24}
  apps:
  - {name: hub, mosquitto: {}}
  nodes:
  - {name: bs, networks: [cell], apps: [hub]}
  - {name: ue, count: 2, networks: [cell]}
  - {name: hq, networks: [lan]}
  timeline:
  - at: 5s
    set:
    - {network: cell, from: bs, to: ue, link: {loss: 5%}}
  collect:
    captures: [cell/ue, lan]
    captureFilter: udp port 698
    captureLimit: 1Gi
---
apiVersion: vignette.dev/v1alpha1
kind: Waveform
metadata: {name: mast}
spec: {link: {rate: 1Mbit}, downlink: {rate: 8Mbit}}
---
apiVersion: vignette.dev/v1alpha1
kind: Capture
metadata: {name: film}
spec:
  experiment: cells
  network: cell
  filter: udp port 698
`
	if findings := judgeText(t, text); len(findings) != 0 {
		t.Fatalf("findings:\n%s\nwant none", join(findings))
	}
	for name, c := range map[string]struct {
		old, with, path string
		line            int
		message         string
	}{
		"a downlink without a base":     {"base: [bs]", "mtu: 1500", "spec.networks[0].base", 6, "waveform mast has a downlink"},
		"a base without a downlink":     {", downlink: {rate: 8Mbit}", "", "spec.networks[0].base", 8, "waveform mast has no downlink"},
		"a base that is not attached":   {"base: [bs]", "base: [hq]", "spec.networks[0].base[0]", 8, `"hq" is not attached to network "cell"`},
		"a change of a node elsewhere":  {"from: bs", "from: hq", "spec.timeline[0].set[0].from", 20, `"hq" is not attached to network "cell"`},
		"a capture of a node elsewhere": {"cell/ue", "cell/hq", "spec.collect.captures[0]", 22, `"hq" is not attached to network "cell"`},
		"a filter that is none":         {"captureFilter: udp port 698", "captureFilter: udp prot 698", "spec.collect.captureFilter", 23, `"udp prot 698"`},
		"a limit of nothing":            {"captureLimit: 1Gi", "captureLimit: 0", "spec.collect.captureLimit", 24, "above zero"},
		"a filter of a Capture":         {"  filter: udp port 698", "  filter: udp prot 698", "spec.filter", 37, "nothing would be captured"},
	} {
		t.Run(name, func(t *testing.T) {
			findings := judgeText(t, strings.Replace(text, c.old, c.with, 1))
			if len(findings) != 1 || !findings[0].Warning || findings[0].Line != c.line || findings[0].Path != c.path || !strings.Contains(findings[0].Message, c.message) {
				t.Errorf("findings:\n%s\nwant one warning in line %d about %s: …%s…", join(findings), c.line, c.path, c.message)
			}
		})
	}
}

func TestWhatIsWrongWithScriptsIsAWarningWithItsLine(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: scripts}
spec:
  duration: 1m
  networks:
  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
  apps:
  - name: flows
    mgen:
      script: |
        0.0 LISTEN UDP 5000
        1.0 ON 1 UDP DTS b/5000 PERIODIC [20 200]
  - {name: sink, mgen: {configMap: {name: scripts, key: sink.mgn}}}
  nodes:
  - {name: a, networks: [wan], apps: [flows]}
  - {name: b, networks: [wan], apps: [sink]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data:
  sink.mgn: "0.0 LISTEN UPD 5000"
`
	findings := judgeText(t, text)
	if len(findings) != 3 || findings[0].Line != 11 || !strings.Contains(findings[0].Message, `"1.0 ON 1 UDP DTS b/5000 PERIODIC [20 200]": line 2: ON: "DTS" is no option of a flow`) ||
		findings[1].Line != 14 || findings[1].Path != "spec.apps[1].mgen.configMap" || !strings.Contains(findings[1].Message, `line 1: LISTEN: protocol "UPD": want UDP or TCP`) {
		t.Errorf("findings:\n%s\nwant one about each script, and that the ConfigMap itself is not checked", join(findings))
	}
	sound := judgeText(t, strings.NewReplacer("DTS", "DST", "UPD", "UDP").Replace(text))
	if len(sound) != 1 {
		t.Errorf("findings:\n%s\nwant none about sound scripts", join(sound))
	}
}
