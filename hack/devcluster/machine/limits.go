package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// limits are the kernel's limits that all nodes and pods share, and their minimum for a cluster of 300 pods.
var limits = []struct {
	path string
	// least is far above the measured use, and costs nothing while unused.
	least int
}{
	// Entries of the one ARP table: one each for a pod and its bridge, and on a radio for each neighbour. Above
	// gc_thresh2, 512 by default, pods evict each other's.
	{"net/ipv4/neigh/default/gc_thresh3", 65536},
	{"net/ipv4/neigh/default/gc_thresh2", 32768},
	{"net/ipv4/neigh/default/gc_thresh1", 16384},
	// With control groups of version 2 containerd's shims take one for each container. The default is 128.
	{"fs/inotify/max_user_instances", 8192},
}

// raiseLimits raises limits below /proc/sys; higher ones stay.
func raiseLimits(root string) (err error) {
	for _, limit := range limits {
		path := filepath.Join(root, limit.path)
		text, readErr := os.ReadFile(path)
		if errors.Is(readErr, os.ErrNotExist) {
			continue // a machine that is itself a container does not show it
		}
		now, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		if readErr == nil && now < limit.least {
			readErr = os.WriteFile(path, []byte(strconv.Itoa(limit.least)), 0o644)
		}
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("kernel parameter %s: want at least %d: %w", limit.path, limit.least, readErr))
		}
	}
	return err
}
