package render

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Keys of the Secret of a guest with cloud-init. KubeVirt accepts only 2 KiB of either in the object itself.
const (
	UserDataKey    = "userdata"
	NetworkDataKey = "networkdata"
)

// agentUnit is the systemd unit of the platform's agent, which runs from its own disk. Without a limit of starts it waits for a late disk.
const (
	agentUnitName = "vignette-guest.service"
	agentUnit     = `[Unit]
Description=Agent of vignette
After=local-fs.target network.target
StartLimitIntervalSec=0
[Service]
Type=simple
ExecStartPre=/bin/mkdir -p /run/vignette/tools
ExecStartPre=/bin/sh -c 'mountpoint -q /run/vignette/tools || mount -o ro LABEL=` + guestconfig.ToolsLabel + ` /run/vignette/tools'
ExecStart=/run/vignette/tools/agent guest --tools /run/vignette/tools
KillMode=mixed
TimeoutStopSec=8
Restart=on-failure
RestartSec=1
StandardOutput=journal+console
StandardError=journal+console
[Install]
WantedBy=multi-user.target
`
)

// startAgent is a user data script that creates the unit. Scripts run once in a machine, units at every boot.
const startAgent = `#!/bin/sh
# The platform's agent, from its own disk.
cat > /etc/systemd/system/` + agentUnitName + ` <<'EOF'
` + agentUnit + `EOF
systemctl daemon-reload
systemctl enable --now --no-block ` + agentUnitName + `
`

// boundary separates the parts of user data. A user's text has it only on purpose.
const boundary = "==vignette-7b6f2c=="

// authorizeKeys is a script that lets keys log in as root.
func authorizeKeys(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return "mkdir -p -m 0700 /root/.ssh\ncat >> /root/.ssh/authorized_keys <<'EOF'\n" + strings.Join(keys, "\n") + "\nEOF\nchmod 0600 /root/.ssh/authorized_keys\n"
}

// UserData is a guest's user data: the start of the agent, and the user's own. It is empty if the guest gets none from the
// platform.
func UserData(in Input, node topology.Node) string {
	spec := settingsOf(in, node)
	if !spec.OwnDisk() || spec.Ignition != "" || spec.CloudInit != nil && spec.CloudInit.Secret != "" {
		return ""
	}
	given, platform := "", ""
	if spec.CloudInit != nil {
		given = spec.CloudInit.UserData
	}
	switch {
	case node.HasAgent():
		platform = startAgent + authorizeKeys(spec.SSHKeys)
	case len(spec.SSHKeys) > 0:
		platform = "#!/bin/sh\n" + authorizeKeys(spec.SSHKeys)
	}
	if given == "" || platform == "" {
		return given + platform
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n", boundary)
	for _, part := range []string{given, platform} {
		fmt.Fprintf(&b, "\n--%s\nContent-Type: %s; charset=\"utf-8\"\n\n%s\n", boundary, contentType(part), part)
	}
	fmt.Fprintf(&b, "\n--%s--\n", boundary)
	return b.String()
}

// contentType is the type of user data by its first line, as cloud-init documents it.
func contentType(userData string) string {
	for _, kind := range []struct{ prefix, name string }{
		{"#cloud-config-archive", "text/cloud-config-archive"}, {"#cloud-config-jsonp", "text/cloud-config-jsonp"}, {"#cloud-config", "text/cloud-config"},
		{"#!", "text/x-shellscript"}, {"#cloud-boothook", "text/cloud-boothook"}, {"#part-handler", "text/part-handler"},
		{"#include-once", "text/x-include-once-url"}, {"#include", "text/x-include-url"}, {"## template: jinja", "text/jinja2"},
	} {
		if strings.HasPrefix(userData, kind.prefix) {
			return kind.name
		}
	}
	return unknownContent
}

// unknownContent is the type of a part that cloud-init leaves out, with no more than a line in its log.
const unknownContent = "text/plain"

// usesCloudInit reports whether a guest has a disk of the data source NoCloud.
func usesCloudInit(in Input, node topology.Node, spec v1alpha1.VirtualMachine) bool {
	return UserData(in, node) != "" || spec.CloudInit != nil
}

// cloudInitSource is the disk of the data source NoCloud. Its network data is the platform's, also with a user's Secret.
func cloudInitSource(spec v1alpha1.VirtualMachine, secret string) kubevirtv1.VolumeSource {
	userData := secret
	if spec.CloudInit != nil && spec.CloudInit.Secret != "" {
		userData = spec.CloudInit.Secret
	}
	return kubevirtv1.VolumeSource{CloudInitNoCloud: &kubevirtv1.CloudInitNoCloudSource{
		UserDataSecretRef: &corev1.LocalObjectReference{Name: userData}, NetworkDataSecretRef: &corev1.LocalObjectReference{Name: secret},
	}}
}

// managementID is the management interface's key beside those of the networks. No network's name has an underscore.
const managementID = "vignette_management"

// networkData makes cloud-init set up the management interface. It leaves the radios to the agent, or sets them up if there is
// none. use-domains is for the server's name, as systemd-networkd ignores the domains of a lease otherwise.
func networkData(in Input, node topology.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 2\nethernets:\n  %s:\n    match: {macaddress: %q}\n    dhcp4: true\n    dhcp4-overrides: {use-domains: true}\n", managementID, managementMAC)
	for _, a := range node.Attachments { // names in quotes: YAML reads some, such as on, as no text
		fmt.Fprintf(&b, "  %q:\n    match: {macaddress: %q}\n    dhcp4: false\n    dhcp6: false\n    optional: true\n", a.Network, a.MAC)
		if node.HasAgent() {
			continue
		}
		network, _ := networkOf(in.Experiment, a.Network)
		fmt.Fprintf(&b, "    set-name: %q\n    mtu: %d\n    addresses: [%s]\n", a.Network, mtu(network), a.Address)
		if routes := staticRoutes(in.Topology, network)[node.Name]; len(routes) > 0 {
			b.WriteString("    routes:\n")
			for _, route := range routes {
				fmt.Fprintf(&b, "    - {to: %s, via: %s}\n", route.To, route.Via)
			}
		}
	}
	return b.String()
}
