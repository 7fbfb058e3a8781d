// Package mosquitto renders Eclipse Mosquitto brokers.
package mosquitto

import (
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders brokers.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "mosquitto" }

// Render a broker.
func (Kind) Render(site apps.Site) apps.Rendering {
	path := apps.RunFile("mosquitto.conf")
	return apps.Rendering{
		Image: site.Images.Mosquitto,
		Instances: []agentconfig.Instance{{
			Name: site.Instances[0], Command: []string{"/usr/sbin/mosquitto", "-c", path},
		}},
		Files:            []agentconfig.File{{Path: path, Content: Config(site)}},
		StopGraceSeconds: 2,
	}
}

// Config is the broker's mosquitto.conf, see mosquitto.conf(5). It logs to standard error, as what it
// prints to a standard output that is no terminal sits in a buffer, and is lost when it is killed. Queue and in-flight limits stay as
// Mosquitto ships them: they are part of what an experiment measures.
func Config(site apps.Site) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listener %d\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nlog_dest stderr\nlog_timestamp_format %%Y-%%m-%%dT%%H:%%M:%%S\n", apps.BrokerPort)
	for i, bridge := range site.App.Mosquitto.Bridges {
		writeBridge(&b, site, bridge, site.BridgePeers[i])
	}
	return b.String()
}

func writeBridge(b *strings.Builder, site apps.Site, bridge v1alpha1.Bridge, peer string) {
	fmt.Fprintf(b, "\nconnection %s-%s-to-%s\naddress %s:%d\n", site.Node, site.App.Name, peer, peer, apps.BrokerPort)
	b.WriteString("bridge_protocol_version mqttv311\ntry_private true\ncleansession true\nnotifications false\nkeepalive_interval 60\n")
	// Jittered back-off from 1 s to at most 5 s: a bridge must not sit out an experiment after one lost SYN.
	b.WriteString("restart_timeout 1 5\n")
	topics := bridge.Topics
	if len(topics) == 0 {
		topics = []v1alpha1.BridgeTopic{{Filter: "#"}}
	}
	for _, topic := range topics {
		direction := topic.Direction
		if direction == "" {
			direction = "both"
		}
		fmt.Fprintf(b, "topic %s %s %d\n", topic.Filter, direction, topic.QoS)
	}
}
