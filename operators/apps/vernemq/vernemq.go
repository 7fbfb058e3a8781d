// Package vernemq renders VerneMQ, in the container image that its makers publish.
package vernemq

import (
	"fmt"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

const (
	// stopGraceSeconds is what the Erlang virtual machine needs to close its queues on a busy host.
	stopGraceSeconds = 10
	// clusterPort carries messages between brokers; firstPort to lastPort Erlang's distribution: the ports of upstream's image.
	clusterPort         = 44053
	firstPort, lastPort = 9100, 9109
	// ownAddress stands for the node's address in the configuration until the script, which can look it up, replaces it.
	ownAddress = "OWN_ADDRESS"
	loopback   = "127.0.0.1"
)

// Kind renders VerneMQ.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "vernemq" }

// Render one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	script := apps.RunFile("vernemq.sh")
	return apps.Rendering{
		Image:     site.Images.VerneMQ,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/sh", script}}},
		Files: []agentconfig.File{
			{Path: apps.RunFile("vernemq.conf"), Content: Config(site)},
			// Whoever the broker serves may publish and hear everything: the access list that VerneMQ ships.
			{Path: apps.RunFile("vmq.acl"), Content: "topic #\n"},
			{Path: script, Content: Script(site)},
		},
		StopGraceSeconds: stopGraceSeconds,
		MetricsPorts:     site.StatisticsPorts(),
	}
}

func alone(site apps.Site) bool { return len(site.ClusterPeers) == 0 }

// Config is the broker's vernemq.conf (https://docs.vernemq.com/configuring-vernemq), without what the script adds. Queue and in-flight limits and what
// is allowed in a network that has come apart stay as VerneMQ ships them: they are part of what an experiment measures.
func Config(site apps.Site) string {
	var b strings.Builder
	listener(&b, site)
	hasPassword := site.App.Security != nil && site.App.Security.Password
	fmt.Fprintf(&b, "allow_anonymous = %s\nplugins.vmq_passwd = %s\n", flag(!hasPassword), flag(hasPassword))
	if hasPassword {
		fmt.Fprintf(&b, "vmq_passwd.password_file = %s\n", apps.RunFile("vmq.passwd"))
	}
	fmt.Fprintf(&b, "plugins.vmq_acl = on\nvmq_acl.acl_file = %s\n", apps.RunFile("vmq.acl"))
	if ports := site.StatisticsPorts(); ports != nil {
		fmt.Fprintf(&b, "listener.http.metrics = 0.0.0.0:%d\n", ports[0])
	}
	address := ownAddress
	if alone(site) {
		address = loopback
	}
	// Peers connect to the address that the listener has, so it must be one that means the same to all of them.
	fmt.Fprintf(&b, "nodename = VerneMQ@%[1]s\ndistributed_cookie = %[2]s\nlistener.vmq.clustering = %[1]s:%[3]d\n", address, apps.ErlangCookie(site), clusterPort)
	fmt.Fprintf(&b, "erlang.distribution.port_range.minimum = %d\nerlang.distribution.port_range.maximum = %d\n", firstPort, lastPort)
	b.WriteString("log.console = console\nlog.error = off\n")
	return b.String()
}

func listener(b *strings.Builder, site apps.Site) {
	port := apps.Port(v1alpha1.ProtocolMQTT, site.App)
	if site.App.Security == nil || !site.App.Security.TLS {
		fmt.Fprintf(b, "listener.tcp.default = 0.0.0.0:%d\n", port)
		return
	}
	fmt.Fprintf(b, "listener.ssl.default = 0.0.0.0:%d\n", port)
	fmt.Fprintf(b, "listener.ssl.default.cafile = %[1]s/ca.crt\nlistener.ssl.default.certfile = %[1]s/tls.crt\nlistener.ssl.default.keyfile = %[1]s/tls.key\n", agentconfig.SecurityDir)
	b.WriteString("listener.ssl.default.require_certificate = off\n")
}

func flag(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Script starts the broker from a copy of its directory in which all that it writes is the run directory's: the image's own belongs to another user
// and cannot be written.
func Script(site apps.Site) string {
	var b strings.Builder
	fmt.Fprintf(&b, `set -eu
umask 077
cd %s
mkdir -p vernemq/etc vernemq/log vernemq/data
for part in /vernemq/*; do
  case "${part##*/}" in
  etc|log|data) ;;
  bin) rm -rf vernemq/bin; cp -r "$part" vernemq/bin ;;
  *) ln -sfn "$part" "vernemq/${part##*/}" ;;
  esac
done
`, agentconfig.RunDir)
	configuration := "cp vernemq.conf vernemq/etc/vernemq.conf\n"
	if !alone(site) {
		// The last address of a name is the radio's: before it /etc/hosts has that of the pod for the node's own name.
		b.WriteString(`address() { awk -v name="$1" '{ for (i = 2; i <= NF; i++) if ($i == name) found = $1 } END { print found }' /etc/hosts; }` + "\n")
		configuration = fmt.Sprintf("sed \"s/%s/$(address %s)/\" vernemq.conf > vernemq/etc/vernemq.conf\n", ownAddress, site.Node)
	}
	b.WriteString(configuration)
	// Only the makers' own packages know this key; others take it for a mistake.
	b.WriteString("if grep -qs '\"accept_eula\"' /vernemq/share/schema/*; then\n  " + licence(site) + "\nfi\n")
	if site.App.Security != nil && site.App.Security.Password {
		fmt.Fprintf(&b, "printf '%%s:%%s\\n' \"$(cat %[1]s/username)\" \"$(cat %[1]s/password)\" > vmq.passwd\nvernemq/bin/vmq-passwd -U vmq.passwd\n", agentconfig.SecurityDir)
	}
	fmt.Fprintf(&b, "export HOME=%s ERL_CRASH_DUMP_BYTES=0\n", agentconfig.RunDir)
	join(&b, site)
	b.WriteString("exec vernemq/bin/vernemq console -noshell -noinput\n")
	return b.String()
}

// licence of an image that asks whether it is accepted: that is for the platform's owner to say.
func licence(site apps.Site) string {
	if site.Images.VerneMQAcceptEULA {
		return "echo 'accept_eula = yes' >> vernemq/etc/vernemq.conf"
	}
	return "echo 'this image of VerneMQ is under its makers'\\'' end user licence agreement: who accepts it says so by the chart value images.vernemqAcceptEULA=true' >&2\n  exit 1"
}

// join lets all brokers but the first, by their nodes' names, join the first, as soon as both serve.
func join(b *strings.Builder, site apps.Site) {
	if alone(site) {
		b.WriteString("export ERL_EPMD_ADDRESS=" + loopback + "\n")
		return
	}
	if first := slices.Min(site.ClusterPeers); first < site.Node {
		fmt.Fprintf(b, "(until vernemq/bin/vmq-admin cluster join discovery-node=VerneMQ@$(address %s) 2>&1 | grep -q Done; do sleep 2; done) &\n", first)
	}
}
