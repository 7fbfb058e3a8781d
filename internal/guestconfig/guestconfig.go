// Package guestconfig is the configuration that the operator gives a virtual machine: one JSON file on a small disk, from which
// `agent guest` makes any Linux a node like a pod.
package guestconfig

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Disks of a guest, found by the labels of their file systems, and the files of the first.
const (
	// ConfigLabel of the file system (ISO 9660) with ConfigFile and TokenFile.
	ConfigLabel = "vignette"
	// ConfigFile has the Config as JSON.
	ConfigFile = "guest.json"
	// TokenFile has the token for the server, which is that of the launcher's pod.
	TokenFile = "token"
	// ToolsLabel of the file system with the platform's programs: agent at its root, and a folder for each App.Tools.
	ToolsLabel = "vgtools"
	// secretLabel begins the labels of file systems (ISO 9660) with Secrets.
	secretLabel = "vgsecret"
)

// SecretLabel of the file system with the i-th Secret of a guest; its keys are files.
func SecretLabel(i int) string { return fmt.Sprint(secretLabel, i) }

// Tools of an app: folders of the tools' file system. The app sees their files at its root, as in the platform's image of that name.
const (
	ToolsTraffic   = "traffic"
	ToolsZeroMQ    = "zeromq"
	ToolsMosquitto = "mosquitto"
	ToolsMGEN      = "mgen"
)

const (
	// MaxBytes of the file: a Secret has at most 1 MiB, and also contains the token.
	MaxBytes = 1<<20 - 16<<10
	// maxVariable of an app's environment, with its name: Linux allows 128 KiB for each (MAX_ARG_STRLEN).
	maxVariable = 128<<10 - 1
	// minMTU by RFC 791.
	minMTU = 68
	maxMTU = 65535
	// maxInterfaceName by IFNAMSIZ, without its end.
	maxInterfaceName = 15
)

// Config of a guest.
type Config struct {
	// Node is the node's name, which becomes the host name.
	Node string `json:"node"`
	// Server's base URL, such as http://vignette-server.vignette-system.svc, reached through the management interface.
	Server string `json:"server"`
	// RunUID is the Experiment's UID.
	RunUID string `json:"runUID"`
	// Interfaces are the radios. A network interface with another MAC address is for management, and is set up by DHCP.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Hosts are lines of /etc/hosts: every peer by its radio address, and the node itself.
	Hosts []Host `json:"hosts,omitempty"`
	// OpenManagement omits the rules that keep traffic of the management interface on the radios.
	OpenManagement bool `json:"openManagement,omitempty"`
	// Apps of the node; each has an agent.
	Apps []App `json:"apps,omitempty"`
	// SSHKeys that may log in, as lines of authorized_keys (sshd(8)); without keys no SSH server is started.
	SSHKeys []string `json:"sshKeys,omitempty"`
}

// Interface is a radio.
type Interface struct {
	// Name of the interface: the network's.
	Name string `json:"name"`
	// MAC address by which the guest finds it.
	MAC string `json:"mac"`
	// Address with its prefix length, such as 198.18.9.1/24.
	Address string `json:"address"`
	// MTU in bytes.
	MTU int `json:"mtu"`
	// Primary takes multicast and limited broadcast.
	Primary bool `json:"primary,omitempty"`
	// TCPCongestionControl of the kernel; unchanged if empty.
	TCPCongestionControl string `json:"tcpCongestionControl,omitempty"`
	// Routes of protocol static.
	Routes []v1alpha1.MemberRoute `json:"routes,omitempty"`
	// Routing of the network, without its routes; nil, or protocol none, for a guest that routes itself or not at all.
	Routing *v1alpha1.Routing `json:"routing,omitempty"`
	// Seed of the routing's jitter.
	Seed int64 `json:"seed,omitempty"`
	// RateBitsPerSecond of the radio, for the metric DAT; 0 is unknown.
	RateBitsPerSecond float64 `json:"rateBitsPerSecond,omitempty"`
}

// Host is a line of /etc/hosts.
type Host struct {
	Address string   `json:"address"`
	Names   []string `json:"names"`
}

// App is an app of the node, with what its container would have.
type App struct {
	// Agent's configuration. An app without instances only reports that the node is there.
	Agent agentconfig.Config `json:"agent"`
	// Tools is the folder of the tools' disk whose files the app sees at its root; empty if its programs are the guest's.
	Tools string `json:"tools,omitempty"`
	// Env of the agent and its instances, with values from ConfigMaps.
	Env map[string]string `json:"env,omitempty"`
	// SecretEnv are further variables, with values from Secrets.
	SecretEnv map[string]SecretKey `json:"secretEnv,omitempty"`
	// Files that the container would have mounted, such as those of ConfigMaps.
	Files []File `json:"files,omitempty"`
	// SecretFiles are further files, of Secrets, such as those of agentconfig.SecurityDir. Only the app's group may read them.
	SecretFiles []SecretFile `json:"secretFiles,omitempty"`
	// RunAsUser is the app's user id; 65532 if absent.
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RawSockets gives the app the right to open raw sockets, CAP_NET_RAW: for ZeroMQ's PGM without UDP.
	RawSockets bool `json:"rawSockets,omitempty"`
}

// File that an app may read and not write.
type File struct {
	// Path is absolute.
	Path    string `json:"path"`
	Content []byte `json:"content"`
	// Secret allows only the app's group to read it.
	Secret bool `json:"secret,omitempty"`
}

// SecretKey is where a secret value is, which only its app may see: neither the configuration nor its author has it.
type SecretKey struct {
	// Disk is the label of the file system with the Secret.
	Disk string `json:"disk"`
	// Secret is the Secret's name, for messages; empty for one that the platform has made.
	Secret string `json:"secret,omitempty"`
	// Key of the Secret, which is the name of the file.
	Key string `json:"key"`
}

// SecretFile is a file with the value of a Secret's key.
type SecretFile struct {
	// Path is absolute.
	Path string `json:"path"`
	SecretKey
}

// Parse reads and validates a configuration.
func Parse(text []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	return c, c.Validate()
}

// Encode validates a configuration and returns the content of ConfigFile.
func Encode(c Config) ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the configuration of virtual machine %s, mostly files of its apps, has %d KiB: want at most %d KiB", c.Node, len(text)>>10, MaxBytes>>10)
	}
	return text, nil
}

// Validate returns what is wrong with a configuration.
func (c Config) Validate() error {
	switch {
	case !hostName.MatchString(c.Node):
		return invalid("node", c.Node, "a host name of lower case letters, digits and hyphens")
	case c.Server == "":
		return invalid("server", c.Server, "the server's base URL")
	case c.RunUID == "":
		return invalid("runUID", c.RunUID, "the Experiment's UID")
	}
	if err := c.validateInterfaces(); err != nil {
		return err
	}
	for i, h := range c.Hosts {
		if err := h.validate(fmt.Sprintf("hosts[%d]", i)); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for i, app := range c.Apps {
		at := fmt.Sprintf("apps[%d]", i)
		if seen[app.Agent.App] {
			return invalid(at+".agent.app", app.Agent.App, "each app once")
		}
		seen[app.Agent.App] = true
		if err := c.validateApp(at, app); err != nil {
			return err
		}
	}
	for i, key := range c.SSHKeys {
		if strings.TrimSpace(key) == "" || strings.ContainsAny(key, "\r\n\x00") {
			return invalid(fmt.Sprintf("sshKeys[%d]", i), key, "one line of authorized_keys")
		}
	}
	return nil
}

var (
	hostName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// appName allows names of folders.
	appName = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._]{0,62}$`)
	// secretDisk allows labels of ISO 9660, and secretKey names of files.
	secretDisk = regexp.MustCompile(`^` + secretLabel + `[0-9]{1,4}$`)
	secretKey  = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	tools      = map[string]bool{"": true, ToolsTraffic: true, ToolsZeroMQ: true, ToolsMosquitto: true, ToolsMGEN: true}
)

func invalid(field string, value any, want string) error {
	return fmt.Errorf("guest configuration: %s is %q: want %s", field, fmt.Sprint(value), want)
}

func (c Config) validateInterfaces() error {
	names, hardware, primary := map[string]bool{}, map[string]bool{}, 0
	for i, n := range c.Interfaces {
		at := fmt.Sprintf("interfaces[%d]", i)
		if err := n.validate(at); err != nil {
			return err
		}
		mac := strings.ToLower(n.MAC)
		if names[n.Name] || hardware[mac] {
			return invalid(at, n.Name+" "+n.MAC, "every name and every MAC address once")
		}
		names[n.Name], hardware[mac] = true, true
		if n.Primary {
			primary++
		}
	}
	if primary > 1 {
		return invalid("interfaces", fmt.Sprintf("%d primary ones", primary), "at most one that is primary")
	}
	return nil
}

func (n Interface) validate(at string) error {
	if n.Name == "" || n.Name == "lo" || n.Name == "." || n.Name == ".." || len(n.Name) > maxInterfaceName || strings.ContainsAny(n.Name, "/: \t\n\v\f\r\x00") {
		return invalid(at+".name", n.Name, fmt.Sprintf("the name of an interface, 1 to %d bytes", maxInterfaceName))
	}
	if mac, err := net.ParseMAC(n.MAC); err != nil || len(mac) != 6 {
		return invalid(at+".mac", n.MAC, "six octets in hexadecimal")
	}
	address, err := netip.ParsePrefix(n.Address)
	if err != nil || !address.Addr().Is4() {
		return invalid(at+".address", n.Address, "an IPv4 address with its prefix length, such as 198.18.9.1/24")
	}
	if n.MTU < minMTU || n.MTU > maxMTU {
		return invalid(at+".mtu", n.MTU, fmt.Sprintf("%d to %d bytes", minMTU, maxMTU))
	}
	for i, route := range n.Routes {
		if _, err := netip.ParsePrefix(route.To); err != nil {
			return invalid(fmt.Sprintf("%s.routes[%d].to", at, i), route.To, "a network in CIDR form")
		}
		if _, err := netip.ParseAddr(route.Via); err != nil {
			return invalid(fmt.Sprintf("%s.routes[%d].via", at, i), route.Via, "an address")
		}
	}
	return nil
}

func (h Host) validate(at string) error {
	if _, err := netip.ParseAddr(h.Address); err != nil {
		return invalid(at+".address", h.Address, "an address")
	}
	if len(h.Names) == 0 {
		return invalid(at+".names", "", "one or more names")
	}
	for _, name := range h.Names {
		if name == "" || strings.ContainsAny(name, " \t\n\v\f\r#\x00") {
			return invalid(at+".names", name, "a host name")
		}
	}
	return nil
}

func (c Config) validateApp(at string, app App) error {
	if err := app.Agent.Validate(); err != nil {
		return fmt.Errorf("guest configuration: %s: %w", at, err)
	}
	switch a := app.Agent; {
	case a.Server != c.Server || a.RunUID != c.RunUID || a.Node != c.Node:
		return invalid(at+".agent", a.Server+" "+a.RunUID+" "+a.Node, "server, runUID and node of the guest itself")
	case !appName.MatchString(a.App):
		return invalid(at+".agent.app", a.App, "letters, digits, dots, hyphens and underscores")
	case !tools[app.Tools]:
		return invalid(at+".tools", app.Tools, "traffic, zeromq, mosquitto, mgen or nothing")
	case app.RunAsUser != nil && (*app.RunAsUser < 1 || *app.RunAsUser > 1<<31-1):
		return invalid(at+".runAsUser", *app.RunAsUser, "a user id other than root's")
	case app.RawSockets && app.Tools != ToolsZeroMQ:
		return invalid(at+".rawSockets", app.RawSockets, "false, as only the platform's programs of ZeroMQ open raw sockets")
	}
	for name, value := range app.Env {
		if !ValidVariable(name, value) {
			return invalid(at+".env", name, WantVariable)
		}
	}
	for i, f := range app.Files {
		if !validPath(f.Path) {
			return invalid(fmt.Sprintf("%s.files[%d].path", at, i), f.Path, wantPath)
		}
	}
	if err := app.validateSecrets(at); err != nil {
		return err
	}
	text, err := json.Marshal(app.Agent)
	if err != nil {
		return fmt.Errorf("guest configuration: %s.agent: %w", at, err)
	}
	if size := len(agentconfig.Env) + 1 + len(text); size > maxVariable {
		return invalid(at+".agent", fmt.Sprintf("%d bytes", size), fmt.Sprintf("at most %d, as it is a variable of the environment", maxVariable))
	}
	return nil
}

// WantVariable describes a valid variable of the environment.
const WantVariable = "a name without = and a value of UTF-8 without NUL, together below 128 KiB"

// ValidVariable reports whether Linux, and the container runtime of pods, would accept a variable.
func ValidVariable(name, value string) bool {
	return name != "" && !strings.ContainsAny(name, "=\x00") && utf8.ValidString(value) && !strings.ContainsRune(value, 0) && len(name)+len(value)+1 <= maxVariable
}

const wantPath = "an absolute path of a file, without . and .."

func validPath(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && p != "/" && !strings.ContainsRune(p, 0)
}

func (a App) validateSecrets(at string) error {
	for name, key := range a.SecretEnv {
		if _, twice := a.Env[name]; twice || !ValidVariable(name, "") {
			return invalid(at+".secretEnv", name, "a name without =, each once")
		}
		if err := key.validate(at + ".secretEnv." + name); err != nil {
			return err
		}
	}
	for i, f := range a.SecretFiles {
		at := fmt.Sprintf("%s.secretFiles[%d]", at, i)
		if !validPath(f.Path) {
			return invalid(at+".path", f.Path, wantPath)
		}
		if err := f.validate(at); err != nil {
			return err
		}
	}
	return nil
}

func (k SecretKey) validate(at string) error {
	switch {
	case !secretDisk.MatchString(k.Disk):
		return invalid(at+".disk", k.Disk, secretLabel+" with a number")
	case !secretKey.MatchString(k.Key):
		return invalid(at+".key", k.Key, "the key of a Secret: letters, digits, dots, hyphens and underscores")
	}
	return nil
}
