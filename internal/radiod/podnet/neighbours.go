package podnet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// neighbourLimits of the kernel's ARP table, which all network namespaces of a host share. A node that were a machine would keep
// what it knows of up to 128 neighbours; with a few dozen nodes on a host the shared limits are passed, and nodes forget each
// other's addresses, which they have to ask for again over the air. An entry takes half a kilobyte.
var neighbourLimits = []struct {
	name    string
	entries int
}{{"gc_thresh3", 65536}, {"gc_thresh2", 32768}, {"gc_thresh1", 16384}}

// RaiseNeighbourLimits makes room in the host's ARP table for what its nodes know. Limits that are higher stay. The error is
// os.ErrNotExist in a network namespace that does not show them, as of a host that is itself a container.
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
		if err := overwrite(path, strconv.Itoa(limit.entries)); err != nil {
			return fmt.Errorf("limit of the ARP table: %w", err)
		}
	}
	return nil
}
