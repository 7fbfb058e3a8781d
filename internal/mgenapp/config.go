// Package mgenapp is an app whose traffic is an MGEN script: it runs Debian's mgen and turns what that logs into the message
// log while it runs.
package mgenapp

import (
	"fmt"
	"net/netip"

	"vignette.dev/vignette/internal/mgen"
)

// Config is what the operator tells the program, as a JSON file.
type Config struct {
	// Instance is node/app; flow N of it is the sender node/app/N in the message log.
	Instance string `json:"instance"`
	Node     string `json:"node"`
	// Script with addresses in the place of nodes' names.
	Script string `json:"script"`
	// Nodes by their addresses: those of all nodes whose flows may come here, and the node's own.
	Nodes map[string]string `json:"nodes"`
}

// Validate says what is wrong with a configuration, if anything.
func (c Config) Validate() error {
	if c.Instance == "" || c.Node == "" {
		return fmt.Errorf("instance %q and node %q must both be set", c.Instance, c.Node)
	}
	for address := range c.Nodes {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("nodes: %q is no address", address)
		}
	}
	script, err := mgen.Parse(c.Script)
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	if err := script.CheckRun(); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	return nil
}

// Sender is the name by which the message log has a flow of an instance.
func Sender(instance string, flow uint32) string { return fmt.Sprintf("%s/%d", instance, flow) }
