package radiod

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/hosts"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/worker"
	"vignette.dev/vignette/internal/wholefile"
)

// newHosts connects networks to other hosts. It returns nil if this host's address is not known; networks then end at this
// host.
func newHosts(o *Options, log *slog.Logger, plane dataplane.Plane, key peers.Key, manager *worker.Manager, recorder hosts.Recorder) *hosts.Hosts {
	if o.HostIP == "" {
		return nil
	}
	h := hosts.New(hosts.Options{Host: o.Host, Address: net.JoinHostPort(o.HostIP, strconv.Itoa(o.PeerPort)), Key: key, Plane: plane, Log: log, Recorder: recorder, Changed: manager.Changed})
	manager.SetHosts(h)
	return h
}

// hostKey returns this host's key. It stays the same until a reboot, so that peers accept a new worker as the
// same host.
func hostKey(path string) (peers.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		if key, err := peers.ParsePrivateKey(text); err == nil {
			return key, nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return peers.PrivateKey{}, fmt.Errorf("key for other hosts: %w", err)
	}
	key, err := peers.NewPrivateKey()
	if err != nil {
		return key, err
	}
	if err := wholefile.Write(path, key.Bytes(), 0o600); err != nil {
		return key, fmt.Errorf("key for other hosts: %w", err)
	}
	return key, nil
}
