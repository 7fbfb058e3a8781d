// Package prosody renders Prosody, an XMPP server, with a publish/subscribe service (XEP-0060).
package prosody

import (
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/traffic/xmpp"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders Prosody, an XMPP server.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "prosody" }

// Render renders a server.
func (Kind) Render(site apps.Site) apps.Rendering {
	start := apps.RunFile("start.sh")
	return apps.Rendering{
		Image: site.Images.Prosody, StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/sh", start}}},
		Files:     []agentconfig.File{{Path: configPath(), Content: Config(site)}, {Path: start, Content: StartScript(site)}}, MetricsPorts: site.StatisticsPorts(),
	}
}

func configPath() string { return apps.RunFile("prosody.cfg.lua") }

func dataPath() string { return apps.RunFile("prosody") }

func security(site apps.Site) v1alpha1.Security {
	if site.App.Security == nil {
		return v1alpha1.Security{}
	}
	return *site.App.Security
}

func metricsPort(site apps.Site) int {
	if len(site.MetricsPorts) == 0 {
		return 0
	}
	return site.MetricsPorts[0]
}

// StartScript creates the account that all clients share, and then executes the server. It overwrites files of an earlier start.
func StartScript(site apps.Site) string {
	user, password := xmpp.Account, xmpp.Account
	if security(site).Password {
		user, password = "$(cat "+agentconfig.SecurityDir+"/username)", "$(cat "+agentconfig.SecurityDir+"/password)"
	}
	return fmt.Sprintf("set -eu\numask 077\nmkdir -p %[1]s\nprosodyctl --config %[2]s register \"%[3]s\" %[4]s \"%[5]s\" > /dev/null\nexec /usr/bin/prosody --config %[2]s -F\n",
		dataPath(), configPath(), user, xmpp.Domain, password)
}

// Config is the server's prosody.cfg.lua (https://prosody.im/doc/configure). It serves only clients, no other servers, and so
// needs no DNS.
//
// The account of the clients is an administrator, because Prosody lets only the owner of the publish/subscribe service create
// nodes. Only accounts are on disk. Prosody's rate limits (mod_limits) are off, because the radio network is the limit.
func Config(site apps.Site) string {
	var b strings.Builder
	sec, port := security(site), metricsPort(site)
	modules := []string{"disco", "roster", "saslauth", "ping", "posix"}
	if sec.TLS {
		modules = append(modules, "tls")
	}
	if port != 0 {
		modules = append(modules, "http_openmetrics")
	}
	user := quote(xmpp.Account)
	if sec.Password {
		user = fmt.Sprintf("assert(io.open(%s)):read(\"l\")", quote(agentconfig.SecurityDir+"/username"))
	}
	fmt.Fprintf(&b, "local user = %s\n\n", user)
	fmt.Fprintf(&b, "data_path = %[1]s\ncertificates = %[1]s\npidfile = %[2]s\nlog = { { levels = { min = \"info\" }, to = \"console\" } }\n\n",
		quote(dataPath()), quote(apps.RunFile("prosody.pid")))
	fmt.Fprintf(&b, "modules_enabled = { %s }\nmodules_disabled = { \"s2s\", \"s2s_auth_certs\", \"offline\" }\n", quoteAll(modules))
	fmt.Fprintf(&b, "interfaces = { \"*\" }\nc2s_ports = { %d }\nc2s_stanza_size_limit = %d\n", apps.Port(v1alpha1.ProtocolXMPP, site.App), xmpp.StanzaBytes)
	fmt.Fprintf(&b, "authentication = \"internal_hashed\"\nadmins = { user .. \"@%s\" }\n", xmpp.Domain)
	b.WriteString("default_storage = \"memory\"\nstorage = { accounts = \"internal\" }\n")
	writeTLS(&b, sec.TLS)
	writeMetrics(&b, port)
	fmt.Fprintf(&b, "\nVirtualHost \"%s\"\n\nComponent \"%s\" \"pubsub\"\nautocreate_on_publish = true\nautocreate_on_subscribe = true\n",
		xmpp.Domain, xmpp.Service)
	return b.String()
}

func writeTLS(b *strings.Builder, wanted bool) {
	fmt.Fprintf(b, "c2s_require_encryption = %v\n", wanted)
	if wanted {
		fmt.Fprintf(b, "ssl = { certificate = %s, key = %s }\n", quote(agentconfig.SecurityDir+"/tls.crt"), quote(agentconfig.SecurityDir+"/tls.key"))
	}
}

// writeMetrics enables mod_http_openmetrics. The node's firewall restricts access to it.
func writeMetrics(b *strings.Builder, port int) {
	if port != 0 {
		fmt.Fprintf(b, "\nstatistics = \"internal\"\nstatistics_interval = \"manual\"\nhttp_ports = { %d }\nhttp_interfaces = { \"*\" }\nhttps_ports = {}\n"+
			"openmetrics_allow_cidr = \"0.0.0.0/0\"\n", port)
	}
}

func quote(text string) string { return "\"" + text + "\"" }

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return strings.Join(quoted, ", ")
}
