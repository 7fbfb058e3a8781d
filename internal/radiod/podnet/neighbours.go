package podnet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// neighbourLimits of the kernel's ARP table, which all network namespaces of a host share. A machine alone
// keeps up to 128 neighbours. A few dozen nodes on a host exceed the shared limits, and nodes then ask for
// addresses again over the air. An entry takes half a kilobyte.
var neighbourLimits = []struct {
	name    string
	entries int
}{{"gc_thresh3", 65536}, {"gc_thresh2", 32768}, {"gc_thresh1", 16384}}

// RaiseNeighbourLimits makes room in the host's ARP table for all its nodes. Higher limits stay. The error is
// os.ErrNotExist in a network namespace without these settings, as of a host that is itself a container.
func RaiseNeighbourLimits() error { return raiseNeighbourLimits(procSysNet) }

func raiseNeighbourLimits(root string) error {
	for _, limit := range neighbourLimits {
		path := filepath.Join(root, "ipv4/neigh/default", limit.name)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("limit of the ARP table: %w", err)
		}
		if now, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && now >= limit.entries {
			continue
		}
		if err := set(path, strconv.Itoa(limit.entries)); err != nil {
			return fmt.Errorf("limit of the ARP table: %w", err)
		}
	}
	return nil
}
