// Package rabbitmq renders RabbitMQ, a broker of AMQP 0-9-1, STOMP and MQTT with common topics.
package rabbitmq

import (
	"fmt"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

const (
	// stopGraceSeconds is the time that Erlang needs to close its queues on a busy host.
	stopGraceSeconds = 10
	// memoryBytes is the memory use at which the broker blocks its publishers at the latest, if the app has no memory limit of
	// its own. RabbitMQ's own default depends on the host's memory.
	memoryBytes = 1 << 30
	// memoryOfLimit is the fraction of the limit at which it does so, because Erlang may briefly use more.
	memoryOfLimit = 0.6
)

// Kind renders RabbitMQ.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "rabbitmq" }

// InnerPorts are those that no client uses: Erlang's name service and distribution.
func InnerPorts() []int { return []int{4369, 25672} }

// Render renders one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	script := apps.RunFile("rabbitmq.sh")
	return apps.Rendering{
		Image:     site.Images.RabbitMQ,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/sh", script}}},
		Files: []agentconfig.File{
			{Path: apps.RunFile("rabbitmq.conf"), Content: Config(site)},
			{Path: apps.RunFile("enabled_plugins"), Content: "[rabbitmq_mqtt,rabbitmq_stomp,rabbitmq_prometheus].\n"},
			{Path: script, Content: Script(site)},
		},
		StopGraceSeconds: stopGraceSeconds,
		MetricsPorts:     site.StatisticsPorts(),
	}
}

// NodeName is a broker's name in Erlang's distribution. A single broker needs no name that others can resolve.
func NodeName(site apps.Site) string {
	if len(site.ClusterPeers) == 0 {
		return "rabbit@localhost"
	}
	return "rabbit@" + site.Node
}

// Config is the broker's rabbitmq.conf (https://www.rabbitmq.com/docs/configure), without the lines of the script. Queue and
// in-flight limits are RabbitMQ's defaults, because an experiment measures them.
func Config(site apps.Site) string {
	var b strings.Builder
	writeListeners(&b, site)
	writeLogin(&b, site)
	fmt.Fprintf(&b, "vm_memory_high_watermark.absolute = %d\n", watermark(site))
	b.WriteString("heartbeat = 60\nlog.console = true\nlog.console.level = info\nlog.file = false\n")
	if ports := site.StatisticsPorts(); ports != nil {
		fmt.Fprintf(&b, "prometheus.tcp.port = %d\n", ports[0])
	} else {
		b.WriteString("prometheus.tcp.ip = 127.0.0.1\n")
	}
	writeCluster(&b, site)
	return b.String()
}

// writeListeners writes the listeners at the clients' ports. With TLS there are no others.
func writeListeners(b *strings.Builder, site apps.Site) {
	secure := site.App.Security != nil && site.App.Security.TLS
	for _, l := range []struct {
		prefix   string
		protocol v1alpha1.Protocol
	}{{"", v1alpha1.ProtocolAMQP}, {"mqtt.", v1alpha1.ProtocolMQTT}, {"stomp.", v1alpha1.ProtocolSTOMP}} {
		kind := "tcp"
		if secure {
			kind = "ssl"
			fmt.Fprintf(b, "%slisteners.tcp = none\n", l.prefix)
		}
		fmt.Fprintf(b, "%slisteners.%s.default = %d\n", l.prefix, kind, apps.Port(l.protocol, site.App))
	}
	if secure {
		fmt.Fprintf(b, "ssl_options.cacertfile = %[1]s/ca.crt\nssl_options.certfile = %[1]s/tls.crt\nssl_options.keyfile = %[1]s/tls.key\n", agentconfig.SecurityDir)
		b.WriteString("ssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false\n")
	}
}

// writeLogin writes how clients log in. Without a password all use RabbitMQ's user guest, from any node. With a password there
// is no such user.
func writeLogin(b *strings.Builder, site apps.Site) {
	if hasPassword(site) {
		b.WriteString("mqtt.allow_anonymous = false\n")
		return
	}
	b.WriteString("loopback_users = none\nmqtt.allow_anonymous = true\nmqtt.default_user = guest\nmqtt.default_pass = guest\n")
	b.WriteString("stomp.default_user = guest\nstomp.default_pass = guest\n")
}

func hasPassword(site apps.Site) bool { return site.App.Security != nil && site.App.Security.Password }

func watermark(site apps.Site) int64 {
	ofLimit := int64(float64(site.MemoryLimit) * memoryOfLimit)
	own := site.App.Resources != nil && site.App.Resources.Limits.Memory().Sign() > 0
	switch {
	case ofLimit == 0:
		return memoryBytes
	case own:
		return ofLimit
	}
	return min(memoryBytes, ofLimit)
}

// writeCluster names all members, in the same order on each of them. After a partition the side with fewer clients restarts
// (autoheal). A single broker listens only on loopback.
func writeCluster(b *strings.Builder, site apps.Site) {
	if len(site.ClusterPeers) == 0 {
		b.WriteString("distribution.listener.interface = 127.0.0.1\n")
		return
	}
	fmt.Fprintf(b, "cluster_name = %s\ncluster_partition_handling = autoheal\ncluster_formation.peer_discovery_backend = classic_config\n", site.App.Name)
	for i, node := range members(site) {
		fmt.Fprintf(b, "cluster_formation.classic_config.nodes.%d = rabbit@%s\n", i+1, node)
	}
}

// members of the cluster.
func members(site apps.Site) []string {
	return slices.Sorted(slices.Values(append([]string{site.Node}, site.ClusterPeers...)))
}

// Script starts the broker with all its state, including secrets, in the run directory.
func Script(site apps.Site) string {
	var b strings.Builder
	run := agentconfig.RunDir
	fmt.Fprintf(&b, "set -eu\numask 077\ncd %s\n", run)
	fmt.Fprintf(&b, "rm -f .erlang.cookie\nprintf %%s %s > .erlang.cookie\ncp rabbitmq.conf started.conf\n", apps.ErlangCookie(site))
	if hasPassword(site) {
		fmt.Fprintf(&b, "printf 'default_user = %%s\\ndefault_pass = %%s\\n' \"$(cat %[1]s/username)\" \"$(cat %[1]s/password)\" >> started.conf\n", agentconfig.SecurityDir)
	}
	for _, variable := range environment(site, run) {
		b.WriteString("export " + variable + "\n")
	}
	b.WriteString("exec /usr/lib/rabbitmq/bin/rabbitmq-server\n")
	return b.String()
}

func environment(site apps.Site, run string) []string {
	variables := []string{
		"HOME=" + run, "RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_NODENAME=" + NodeName(site),
		"RABBITMQ_CONFIG_FILE=" + run + "/started.conf", "RABBITMQ_ENABLED_PLUGINS_FILE=" + run + "/enabled_plugins",
		"RABBITMQ_MNESIA_BASE=" + run + "/mnesia", "RABBITMQ_GENERATED_CONFIG_DIR=" + run + "/generated", "RABBITMQ_LOG_BASE=" + run,
		"RABBITMQ_LOGS=-", "RABBITMQ_PID_FILE=" + run + "/rabbitmq.pid", "ERL_CRASH_DUMP_BYTES=0",
		// Without it the agent's SIGTERM would reach a shell instead of the broker.
		"RUNNING_UNDER_SYSTEMD=true",
	}
	if len(site.ClusterPeers) == 0 {
		variables = append(variables, "ERL_EPMD_ADDRESS=127.0.0.1")
	}
	return variables
}
