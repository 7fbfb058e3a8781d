// Package vernemq renders VerneMQ in upstream's container image.
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
	// stopGraceSeconds is the time that Erlang needs to close its queues on a busy host.
	stopGraceSeconds = 10
	// namePort is of Erlang's name service. clusterPort is for messages between brokers.
	// firstPort to lastPort are for Erlang's distribution, as in upstream's image.
	namePort            = 4369
	clusterPort         = 44053
	firstPort, lastPort = 9100, 9109
	// Placeholders for values that only the script knows: addresses of nodes, and a new cookie for each start.
	ownAddress   = "OWN_ADDRESS"
	firstAddress = "FIRST_ADDRESS"
	ownCookie    = "OWN_COOKIE"
	loopback     = "127.0.0.1"
)

// Kind renders VerneMQ.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "vernemq" }

// InnerPorts are those that no client uses: of Erlang's name service and distribution, and for messages between brokers.
func InnerPorts() []int {
	ports := []int{namePort, clusterPort}
	for port := firstPort; port <= lastPort; port++ {
		ports = append(ports, port)
	}
	return ports
}

// Render renders one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	script := apps.RunFile("vernemq.sh")
	return apps.Rendering{
		Image:     site.Images.VerneMQ,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/sh", script}}},
		Files: []agentconfig.File{
			{Path: apps.RunFile("vernemq.conf"), Content: Config(site)},
			// VerneMQ's default access list: all clients may publish and receive everything.
			{Path: apps.RunFile("vmq.acl"), Content: "topic #\n"},
			{Path: apps.RunFile("started.erl.in"), Content: Started(site)},
			{Path: script, Content: Script(site)},
		},
		StopGraceSeconds: stopGraceSeconds,
		MetricsPorts:     site.StatisticsPorts(),
	}
}

func isStandalone(site apps.Site) bool { return len(site.ClusterPeers) == 0 }

// Config is the broker's vernemq.conf (https://docs.vernemq.com/configuring-vernemq), without the lines of the script. Queue
// and in-flight limits and the behaviour in a network partition are VerneMQ's defaults, because an experiment measures them.
// Started opens the listener for clients, because VerneMQ would open it before authentication and access lists are loaded.
func Config(site apps.Site) string {
	var b strings.Builder
	hasPassword := site.App.Security != nil && site.App.Security.Password
	fmt.Fprintf(&b, "allow_anonymous = %s\nplugins.vmq_passwd = %s\n", flag(!hasPassword), flag(hasPassword))
	if hasPassword {
		fmt.Fprintf(&b, "vmq_passwd.password_file = %s\n", apps.RunFile("vmq.passwd"))
	}
	fmt.Fprintf(&b, "plugins.vmq_acl = on\nvmq_acl.acl_file = %s\n", apps.RunFile("vmq.acl"))
	if ports := site.StatisticsPorts(); ports != nil {
		fmt.Fprintf(&b, "listener.http.metrics = 0.0.0.0:%d\n", ports[0])
	}
	address, cookie := ownAddress, apps.ErlangCookie(site)
	if isStandalone(site) {
		address, cookie = loopback, ownCookie
	}
	// Peers connect to the listener's address, so all of them must be able to reach it.
	fmt.Fprintf(&b, "nodename = VerneMQ@%[1]s\ndistributed_cookie = %[2]s\nlistener.vmq.clustering = %[1]s:%[3]d\n", address, cookie, clusterPort)
	// Anybody who reaches this port and has the cookie controls the broker.
	fmt.Fprintf(&b, "erlang.distribution.interface = %s\n", address)
	fmt.Fprintf(&b, "erlang.distribution.port_range.minimum = %d\nerlang.distribution.port_range.maximum = %d\n", firstPort, lastPort)
	// Without the file of errors Erlang's own handler is used, which prints everything.
	b.WriteString("log.console = console\nlog.error = on\nlog.error.rotation.size = 1MB\nlog.error.rotation.keep = 1\n")
	return b.String()
}

// Started is Erlang code that the broker evaluates. Once VerneMQ runs with authentication and access lists, it joins the mesh
// and opens the listener for clients by commands of vmq-admin. The order matters, because a member with clients cannot join any
// more. All members join the first, by the nodes' names. A restarted one still knows the others.
func Started(site apps.Site) string {
	var b strings.Builder
	b.WriteString(`Admin = fun(Command) -> vmq_server_cli:command(["vmq-admin" | Command], false) end.
Await = fun Again() ->
    case lists:keymember(vmq_server, 1, application:which_applications(infinity)) of
        true -> ok;
        false -> timer:sleep(50), Again()
    end
end.
`)
	before := "        Await(),\n"
	if joinsFirst(site) {
		before += "        Join(),\n"
		b.WriteString(`Join = fun Again() ->
    case vmq_peer_service:members() of
        [_] ->
            Joined = (catch Admin(["cluster", "join", "discovery-node=VerneMQ@` + firstAddress + `"])),
            timer:sleep(case Joined of {ok, _} -> 100; _ -> 2000 end),
            Again();
        _ ->
            ok
    end
end.
`)
	}
	fmt.Fprintf(&b, `spawn(fun() ->
    try
%s        {ok, _} = Admin(["listener", "start", "%s"])
    catch
        _:Reason ->
            logger:error("the listener for clients did not start: ~p", [Reason]),
            init:stop(1)
    end
end).
`, before, strings.Join(listener(site), `", "`))
	return b.String()
}

// listener has the options of vmq-admin listener start for clients. It has no default for the versions of MQTT, so these are
// the configuration's.
func listener(site apps.Site) []string {
	options := []string{"address=0.0.0.0", fmt.Sprintf("port=%d", apps.Port(v1alpha1.ProtocolMQTT, site.App)), "--allowed_protocol_versions=3,4,5,131"}
	if site.App.Security == nil || !site.App.Security.TLS {
		return options
	}
	dir := agentconfig.SecurityDir
	return append(options, "--ssl", "--cafile="+dir+"/ca.crt", "--certfile="+dir+"/tls.crt", "--keyfile="+dir+"/tls.key")
}

// firstMember is the first member by the nodes' names.
func firstMember(site apps.Site) string {
	return slices.Min(append(slices.Clone(site.ClusterPeers), site.Node))
}

func joinsFirst(site apps.Site) bool { return firstMember(site) != site.Node }

func flag(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Script starts the broker from a copy of its directory that writes only to the run directory. The image's own directory
// belongs to another user and is read-only.
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
	b.WriteString(configuration(site))
	// Only upstream's own packages accept this key. Others refuse it.
	b.WriteString("if grep -qs '\"accept_eula\"' /vernemq/share/schema/*; then\n  " + licence(site) + "\nfi\n")
	if site.App.Security != nil && site.App.Security.Password {
		// It reads the password twice from standard input. In a line of name:password it would cut it at a colon.
		fmt.Fprintf(&b, "rm -f vmq.passwd\npassword=$(cat %[1]s/password)\nprintf '%%s\\n%%s\\n' \"$password\" \"$password\" | vernemq/bin/vmq-passwd -c vmq.passwd \"$(cat %[1]s/username)\" > /dev/null\n", agentconfig.SecurityDir)
	}
	fmt.Fprintf(&b, "export HOME=%s ERL_CRASH_DUMP_BYTES=0\n", agentconfig.RunDir)
	if isStandalone(site) {
		b.WriteString("export ERL_EPMD_ADDRESS=" + loopback + "\n")
	}
	fmt.Fprintf(&b, "exec vernemq/bin/vernemq console -noshell -noinput -run file eval %s\n", apps.RunFile("started.erl"))
	return b.String()
}

// configuration writes the configuration with the values that only the script knows.
func configuration(site apps.Site) string {
	if isStandalone(site) {
		return "cookie=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')\n" +
			"sed \"s/" + ownCookie + "/$cookie/\" vernemq.conf > vernemq/etc/vernemq.conf\ncp started.erl.in started.erl\n"
	}
	// The last address of a name is the radio's. Before it /etc/hosts may have the pod's for the node's own name.
	return `address() { awk -v name="$1" '{ for (i = 2; i <= NF; i++) if ($i == name) found = $1 } END { print found }' /etc/hosts; }` + "\n" +
		fmt.Sprintf("sed \"s/%s/$(address %s)/\" vernemq.conf > vernemq/etc/vernemq.conf\n", ownAddress, site.Node) +
		fmt.Sprintf("sed \"s/%s/$(address %s)/\" started.erl.in > started.erl\n", firstAddress, firstMember(site))
}

// licence accepts the image's licence if the platform's owner has accepted it.
func licence(site apps.Site) string {
	if site.Images.VerneMQAcceptEULA {
		return "echo 'accept_eula = yes' >> vernemq/etc/vernemq.conf"
	}
	return "echo 'this image of VerneMQ is under its makers'\\'' end user licence agreement: who accepts it says so by the chart value images.vernemqAcceptEULA=true' >&2\n  exit 1"
}
