// Package mgenapp is an app whose traffic is an MGEN script: it runs Debian's mgen and converts its log to the message
// log while it runs.
package mgenapp

import (
	"fmt"
	"net/netip"

	"vignette.dev/vignette/internal/mgen"
)

// Config is the program's configuration, a JSON file from the operator.
type Config struct {
	// Instance is node/app; flow N of it is the sender node/app/N in the message log.
	Instance string `json:"instance"`
	Node     string `json:"node"`
	// Script with addresses instead of nodes' names.
	Script string `json:"script"`
	// Nodes by address: all nodes whose flows may arrive here, and the node itself.
	Nodes map[string]string `json:"nodes"`
}

// Validate returns an error for an invalid configuration.
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

// Sender returns the name of an instance's flow in the message log.
func Sender(instance string, flow uint32) string { return fmt.Sprintf("%s/%d", instance, flow) }
