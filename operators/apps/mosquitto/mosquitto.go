// Package mosquitto renders Eclipse Mosquitto brokers.
package mosquitto

import (
	"cmp"
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// Kind renders brokers.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "mosquitto" }

// program is its path in Debian.
const program = "/usr/sbin/mosquitto"

// Render renders a broker.
func (Kind) Render(site apps.Site) apps.Rendering {
	config := apps.RunFile("mosquitto.conf")
	r := apps.Rendering{
		Image:            site.Images.Mosquitto,
		Instances:        []agentconfig.Instance{{Name: site.Instances[0], Command: []string{program, "-c", config}}},
		Files:            []agentconfig.File{{Path: config, Content: Config(site)}},
		StopGraceSeconds: 2,
	}
	if usesPassword(site) {
		start := apps.RunFile("start.sh")
		r.Files = []agentconfig.File{{Path: template(), Content: Config(site)}, {Path: start, Content: startScript}}
		r.Instances[0].Command = []string{"/bin/sh", start}
	}
	if site.StatisticsPorts() != nil {
		addStatistics(&r, site)
	}
	return r
}

// addStatistics adds a process that serves the broker's statistics. It is a client within the node, so that nothing goes over a
// radio.
func addStatistics(r *apps.Rendering, site apps.Site) {
	path, name := apps.RunFile("statistics.json"), site.Instances[0]+"/statistics"
	config := trafficconfig.Config{
		Instance: name, Protocol: string(v1alpha1.ProtocolMQTT), Broker: fmt.Sprintf("127.0.0.1:%d", apps.Port(v1alpha1.ProtocolMQTT, site.App)),
		Security: traffic.Security(site.App), MetricsPort: site.MetricsPorts[0], Seed: apps.Seed(site.Seed, "instance", name),
		Subscribe: &trafficconfig.Subscribe{Topics: []string{"$SYS/broker/#"}},
	}
	r.Files = append(r.Files, agentconfig.File{Path: path, Content: apps.JSON(config)})
	r.Instances = append(r.Instances, agentconfig.Instance{Name: name, Command: []string{"/mosquitto-statistics", "--config", path}, Aside: true})
	r.MetricsPorts = site.StatisticsPorts()
}

// Placeholders of values in the Secret.
const (
	userPlaceholder     = "@USERNAME@"
	passwordPlaceholder = "@PASSWORD@"
)

func template() string { return apps.RunFile("mosquitto.conf.in") }

func passwords() string { return apps.RunFile("passwords") }

// startScript writes the files with the password from the Secret. These are the broker's password file, with the password's
// hash, and the configuration, in which bridges log in. It overwrites those of an earlier start. It passes the password
// twice, because mosquitto_passwd would cut it at the first colon in a line of name:password.
var startScript = `set -eu
umask 077
user=$(cat ` + security("username") + `)
password=$(cat ` + security("password") + `)
printf '%s\n%s\n' "$password" "$password" | mosquitto_passwd -c ` + passwords() + ` "$user" > /dev/null
literal() { printf %s "$1" | sed 's/[&/\]/\\&/g'; }
sed -e "s/` + userPlaceholder + `/$(literal "$user")/" -e "s/` + passwordPlaceholder + `/$(literal "$password")/" ` + template() + ` > ` + apps.RunFile("mosquitto.conf") + `
exec ` + program + ` -c ` + apps.RunFile("mosquitto.conf") + `
`

func security(file string) string { return agentconfig.SecurityDir + "/" + file }

// usesPassword reports whether the broker or one of its bridges uses a password.
func usesPassword(site apps.Site) bool {
	for _, peer := range site.Servers {
		if s := peer.App.Security; s != nil && s.Password {
			return true
		}
	}
	s := site.App.Security
	return s != nil && s.Password
}

// Config is the broker's mosquitto.conf, see mosquitto.conf(5). It logs to standard error, because standard output is
// buffered and lost when the broker is killed. Queue and in-flight limits are Mosquitto's defaults, because an experiment
// measures them.
func Config(site apps.Site) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listener %d\n", apps.Port(v1alpha1.ProtocolMQTT, site.App))
	writeSecurity(&b, site.App.Security)
	b.WriteString("persistence false\nset_tcp_nodelay true\nlog_dest stderr\nlog_timestamp_format %Y-%m-%dT%H:%M:%S\n")
	for i, bridge := range site.App.Mosquitto.Bridges {
		writeBridge(&b, site, bridge, site.Servers[i])
	}
	return b.String()
}

func writeSecurity(b *strings.Builder, s *v1alpha1.Security) {
	if s != nil && s.TLS {
		fmt.Fprintf(b, "certfile %s\nkeyfile %s\n", security("tls.crt"), security("tls.key"))
	}
	if s != nil && s.Password {
		fmt.Fprintf(b, "allow_anonymous false\npassword_file %s\n", passwords())
		return
	}
	b.WriteString("allow_anonymous true\n")
}

func writeBridge(b *strings.Builder, site apps.Site, bridge v1alpha1.Bridge, peer apps.Server) {
	fmt.Fprintf(b, "\nconnection %s-%s-to-%s\naddress %s\n", site.Node, site.App.Name, peer.Node, peer.Address)
	fmt.Fprintf(b, "bridge_protocol_version mqttv311\ntry_private true\ncleansession %t\nnotifications false\nkeepalive_interval 60\n", !bridge.KeepsSession())
	// Jittered back-off from 1 s to at most 5 s, so that one lost SYN does not disable a bridge for an experiment.
	b.WriteString("restart_timeout 1 5\n")
	if s := peer.App.Security; s != nil && s.TLS {
		fmt.Fprintf(b, "bridge_cafile %s\n", security("ca.crt"))
	}
	if s := peer.App.Security; s != nil && s.Password {
		fmt.Fprintf(b, "remote_username %s\nremote_password %s\n", userPlaceholder, passwordPlaceholder)
	}
	for _, topic := range bridge.AllTopics() {
		fmt.Fprintf(b, "topic %s %s %d", topic.Filter, cmp.Or(topic.Direction, "both"), topic.QoS)
		if topic.LocalPrefix != "" || topic.RemotePrefix != "" {
			fmt.Fprintf(b, " %s %s", prefix(topic.LocalPrefix), prefix(topic.RemotePrefix))
		}
		b.WriteByte('\n')
	}
}

// prefix is a bridge's prefix of topics. mosquitto.conf uses two quotes for none.
func prefix(text string) string { return cmp.Or(text, `""`) }
