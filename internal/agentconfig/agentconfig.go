// Package agentconfig is what the operator tells an agent: one JSON value in the container's
// environment, so that a pod carries all that it needs and no other object has to be kept in step.
package agentconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Env is the environment variable that holds the Config as JSON.
const Env = "VIGNETTE_AGENT"

// Paths inside a node's containers.
const (
	// BinDir holds the agent, put there by the pod's init container (`agent install DIR`).
	BinDir = "/vignette/bin"
	// RunDir holds files the agent writes for its app; private to each container.
	RunDir = "/vignette/run"
	// LogDir is the sized spool of message logs, output and agent events; private to each container.
	LogDir = "/vignette/log"
	// SecurityDir holds, where an app's broker or the app itself has security, the files ca.crt, tls.crt and tls.key (TLS), username and
	// password.
	SecurityDir = "/vignette/security"
	// ClockFile says what is known of the node's clock where it is not its host's (runapi.AgentClock); absent in pods.
	ClockFile = "/vignette/clock/clock.json"
	// TokenFile is the projected token for the server.
	TokenFile = "/vignette/token/token"
)

// maxGraceSeconds is an hour, far above what any app is given.
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
	// Env is added to the container's environment.
	Env map[string]string `json:"env,omitempty"`
	// Aside tells that the process runs beside the app, such as one that serves its statistics: it starts and stops with the app, logs nothing of
	// messages, and is no part of what the app is said to do. Where it fails, or is not there, the app has not failed.
	Aside bool `json:"aside,omitempty"`
}

// Config is what an agent, which is process 1 of one app's container, is to do.
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
	// DrainOnStop is for apps that both send and receive: a stop sends SIGUSR1, upon which the app
	// sends no more but goes on receiving what is still under way. It ends when the run finishes.
	DrainOnStop bool `json:"drainOnStop,omitempty"`
	// MessagesOnStdout tells that lines of standard output that are message events belong into the message log. Without
	// it the app appends them to the file that VIGNETTE_MESSAGE_LOG names.
	MessagesOnStdout bool `json:"messagesOnStdout,omitempty"`
	// TCPCongestionControl that the node's kernel must have; empty for any.
	TCPCongestionControl string `json:"tcpCongestionControl,omitempty"`
	// SpoolLimitBytes bounds the logs of the container before they are shipped; 0 means 512 MiB. Half of
	// it is for standard output and error, which are cut off beyond, with an event.
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

// Validate says what is wrong with a configuration, if anything.
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
	for i, in := range c.Instances {
		if in.Name == "" || len(in.Command) == 0 || in.Command[0] == "" {
			return fmt.Errorf("agent configuration: instances[%d] needs a name and a command", i)
		}
		for name := range in.Env {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				return fmt.Errorf("agent configuration: instances[%d].env has a variable %q: want a name without =", i, name)
			}
		}
	}
	return nil
}
