// Package agentconfig is the configuration that the operator gives an agent: one JSON value in the container's environment, so
// that a pod has all it needs and no other object must be kept consistent.
package agentconfig

import (
	"encoding/json"
	"fmt"
	"os"
)

// Env is the environment variable that holds the Config as JSON.
const Env = "VIGNETTE_AGENT"

// Paths inside a node's containers.
const (
	// BinDir has the agent, which the pod's init container installs (`agent install DIR`).
	BinDir = "/vignette/bin"
	// RunDir has files that the agent writes for its app; private to each container.
	RunDir = "/vignette/run"
	// MovementFile has the node's position as a function of time (package position).
	MovementFile = RunDir + "/movement"
	// PositionFile has the node's present position, for own apps.
	PositionFile = RunDir + "/position.json"
	// LogDir is the limited spool of message logs, output and agent events; private to each container.
	LogDir = "/vignette/log"
	// SecurityDir has the files of an app or broker with security: ca.crt, tls.crt and tls.key (TLS), username and password.
	SecurityDir = "/vignette/security"
	// ClockFile has the state of a node's own clock (runapi.AgentClock); absent in pods, which have their host's.
	ClockFile = "/vignette/clock/clock.json"
	// TokenFile is the projected token for the server.
	TokenFile = "/vignette/token/token"
)

// maxGraceSeconds is an hour, far more than any app has.
const maxGraceSeconds = 3600

// File is a file that the agent writes before it starts its app.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Instance is one process of the app.
type Instance struct {
	// Name is node/app, or node/app/i for several instances.
	Name string `json:"name"`
	// Command with its arguments.
	Command []string `json:"command"`
	// Platform of the scenario whose position the process reports; 0 for the node's own position.
	Platform int `json:"platform,omitempty"`
	// Aside marks a process beside the app, such as one that serves its statistics. It starts and stops with the app, and logs no
	// messages. If it fails, or does not exist, the app has not failed.
	Aside bool `json:"aside,omitempty"`
}

// Position says where the node of an app is.
type Position struct {
	// Platform of the scenario, whose movement the server has; 0 for a fixed node.
	Platform int `json:"platform,omitempty"`
	// LatitudeDegrees, LongitudeDegrees and AltitudeMetres (WGS 84) of a fixed node.
	LatitudeDegrees  float64 `json:"latitudeDegrees,omitempty"`
	LongitudeDegrees float64 `json:"longitudeDegrees,omitempty"`
	AltitudeMetres   float64 `json:"altitudeMetres,omitempty"`
	// File: the app has PositionFile.
	File bool `json:"file,omitempty"`
	// Log: the agent logs the node's positions, which one agent of a node does.
	Log bool `json:"log,omitempty"`
}

// Config of an agent, which is process 1 of one app's container.
type Config struct {
	// Server's base URL, such as http://vignette-server.vignette-system.svc.
	Server string `json:"server"`
	// RunUID is the Experiment's UID.
	RunUID string `json:"runUID"`
	Node   string `json:"node"`
	App    string `json:"app"`
	// Instances that start and stop together.
	Instances []Instance `json:"instances"`
	Files     []File     `json:"files,omitempty"`
	// StopGraceSeconds from SIGTERM to SIGKILL.
	StopGraceSeconds float64 `json:"stopGraceSeconds"`
	// DrainOnStop is for apps that both send and receive: a stop sends SIGUSR1, after which the app only receives what is under
	// way. A process that is restarted then has VIGNETTE_QUIET=1 instead. It ends when the run finishes.
	DrainOnStop bool `json:"drainOnStop,omitempty"`
	// MessagesOnStdout moves message events from standard output to the message log. Without it the app appends them to the file
	// that VIGNETTE_MESSAGE_LOG names.
	MessagesOnStdout bool `json:"messagesOnStdout,omitempty"`
	// TCPCongestionControl that the node's kernel must have; empty for any.
	TCPCongestionControl string `json:"tcpCongestionControl,omitempty"`
	// Position of the node; nil if it has none.
	Position *Position `json:"position,omitempty"`
	// SpoolLimitBytes bounds the container's logs before they are shipped; 0 means 512 MiB. Half of it is for standard output
	// and error, which are cut off beyond that, with an event.
	SpoolLimitBytes int64 `json:"spoolLimitBytes,omitempty"`
}

// FromEnv reads the agent's configuration.
func FromEnv() (Config, error) {
	var c Config
	text := os.Getenv(Env)
	if text == "" {
		return c, fmt.Errorf("the environment variable %s is empty: the operator sets it to the agent's configuration as JSON", Env)
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("environment variable %s: %w", Env, err)
	}
	return c, c.Validate()
}

// Validate returns what is wrong with a configuration.
func (c Config) Validate() error {
	switch {
	case c.Server == "":
		return fmt.Errorf("agent configuration: server is empty: want the server's base URL")
	case c.RunUID == "" || c.Node == "" || c.App == "":
		return fmt.Errorf("agent configuration: runUID %q, node %q and app %q must all be set", c.RunUID, c.Node, c.App)
	case c.StopGraceSeconds < 0 || c.StopGraceSeconds > maxGraceSeconds:
		return fmt.Errorf("agent configuration: stopGraceSeconds is %v: want 0 to %d", c.StopGraceSeconds, maxGraceSeconds)
	case c.SpoolLimitBytes < 0:
		return fmt.Errorf("agent configuration: spoolLimitBytes is %d: want 0 or more", c.SpoolLimitBytes)
	}
	if p := c.Position; p != nil && p.Platform < 0 {
		return fmt.Errorf("agent configuration: position.platform is %d: want the number of a platform, or 0 for a fixed node", p.Platform)
	}
	for i, in := range c.Instances {
		if in.Name == "" || len(in.Command) == 0 || in.Command[0] == "" {
			return fmt.Errorf("agent configuration: instances[%d] needs a name and a command", i)
		}
		if in.Platform < 0 {
			return fmt.Errorf("agent configuration: instances[%d].platform is %d: want the number of a platform, or 0 for none", i, in.Platform)
		}
	}
	return nil
}
