package worker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/vmnic"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// record is the state of one attachment that outlives the worker.
type record struct {
	PodUID       string `json:"podUID"`
	PodNamespace string `json:"podNamespace"`
	PodName      string `json:"podName"`
	ContainerID  string `json:"containerID"`
	// Interface of the member, that is the network's name.
	Interface     string `json:"interface"`
	Configuration string `json:"configuration"`
	// NamespacePath on the host, and Namespace, the identity that must be found there.
	NamespacePath string         `json:"namespacePath"`
	Namespace     netns.Identity `json:"namespace"`
	// Index of the interface in the pod's namespace.
	Index int `json:"index"`
	// NetworkUID of the RadioNetwork, and the attachment's member.
	NetworkUID string `json:"networkUID"`
	// RunUID is the experiment's, Network the network's name in it.
	RunUID  string          `json:"runUID,omitempty"`
	Network string          `json:"network,omitempty"`
	Member  v1alpha1.Member `json:"member"`
	// Gateways of the pod's default routes, from which a host without an address there may probe.
	Gateways []string `json:"gateways,omitempty"`
	// Pinned reports whether the descriptor was opened in the pod's namespace, and so keeps it alive.
	Pinned bool `json:"pinned,omitempty"`
	// Settings of the kernel in the namespace, for the run record.
	Settings map[string]string `json:"settings,omitempty"`
	// Engine that carries the frames, if it is not radiod's own.
	Engine v1alpha1.Engine `json:"engine,omitempty"`
	// Guest is the additional part of a virtual machine; nil for pods.
	Guest *guest `json:"guest,omitempty"`
}

// guest is the part of an attachment that only a virtual machine has.
type guest struct {
	// TAP that QEMU opens in the launcher's namespace, with the name that the runtime requires, and its
	// index.
	TAP   string `json:"tap"`
	Index int    `json:"index"`
	// Management is the index of eth0 in that namespace.
	Management int `json:"management"`
}

// link returns the name of radiod's interface in the namespace.
func (r *record) link() string {
	if r.Guest != nil {
		return vmnic.RadioName(r.Interface)
	}
	return r.Interface
}

// wireAttachment returns the attachment as the runtime requested it.
func (r *record) wireAttachment() wire.Attachment {
	if r.Guest != nil {
		return wire.Attachment{ContainerID: r.ContainerID, Interface: r.Guest.TAP}
	}
	return wire.Attachment{ContainerID: r.ContainerID, Interface: r.Interface}
}

func (r *record) key() memberKey { return memberKey{r.PodUID, r.Interface} }

// id identifies the attachment's descriptor at the parent, and its file.
func (r *record) id() string { return r.PodUID + "_" + r.Interface }

// store keeps records and networks in files, one each, so that a new worker carries frames before it reaches
// the API server.
type store struct{ directory string }

const (
	attachmentFiles = "attachments"
	networkFiles    = "networks"
	// counterFiles are not JSON, despite their names.
	counterFiles = "counters"
)

func newStore(directory string) (store, error) {
	for _, kind := range []string{attachmentFiles, networkFiles, counterFiles} {
		if err := os.MkdirAll(filepath.Join(directory, kind), 0o700); err != nil {
			return store{}, fmt.Errorf("state folder: %w", err)
		}
	}
	return store{directory}, nil
}

func (s store) path(kind, name string) string {
	return filepath.Join(s.directory, kind, strings.ReplaceAll(name, "/", "_")+".json")
}

// put replaces a file in one step. It does not sync: the folder is on a tmpfs, and a power cut also ends the
// namespaces.
func (s store) put(kind, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("state of %s: %w", name, err)
	}
	final := s.path(kind, name)
	if err := os.WriteFile(final+".new", text, 0o600); err != nil {
		return fmt.Errorf("state of %s: %w", name, err)
	}
	return os.Rename(final+".new", final)
}

func (s store) remove(kind, name string) error {
	if err := os.Remove(s.path(kind, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("state of %s: %w", name, err)
	}
	return nil
}

// load reads all files of a kind. Broken ones are reported and removed.
func load[T any](s store, kind string) (values []T, err error) {
	entries, err := os.ReadDir(filepath.Join(s.directory, kind))
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	var broken error
	for _, entry := range entries {
		path := filepath.Join(s.directory, kind, entry.Name())
		if !strings.HasSuffix(path, ".json") {
			_ = os.Remove(path) // left incomplete when the worker died
			continue
		}
		var value T
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err != nil {
			broken = errors.Join(broken, fmt.Errorf("state file %s: %w", path, err), os.Remove(path))
			continue
		}
		values = append(values, value)
	}
	return values, broken
}

// removeOrphanedCounters removes counters that belong to no attachment.
func (s store) removeOrphanedCounters(all []*attachment) error {
	entries, err := os.ReadDir(filepath.Join(s.directory, counterFiles))
	known := map[string]bool{}
	for _, a := range all {
		known[filepath.Base(s.countersPath(a.id()))] = true
	}
	for _, entry := range entries {
		if !known[entry.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(s.directory, counterFiles, entry.Name())))
		}
	}
	return err
}

// instance returns this state folder's unique name.
func (s store) instance() (string, error) {
	path := filepath.Join(s.directory, "instance")
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	name := rand.Text()
	if err := os.WriteFile(path+".new", []byte(name), 0o600); err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	return name, os.Rename(path+".new", path)
}

const (
	seenFile = "seen"
	bootFile = "boot-id"
	// bootID of the kernel. After a boot namespaces' numbers may be reused.
	bootID = "/proc/sys/kernel/random/boot_id"
)

// newBoot reports whether the host was booted since an earlier worker wrote its state.
func (s store) newBoot() (bool, error) {
	current, err := os.ReadFile(bootID)
	if err != nil {
		return false, fmt.Errorf("the kernel's boot: %w", err)
	}
	path := filepath.Join(s.directory, bootFile)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("state folder: %w", err)
	}
	return err == nil && string(before) != string(current), os.WriteFile(path, current, 0o600)
}

// lastSeen returns when the previous worker was last seen, nanoseconds of the real-time clock; 0 for never.
func (s store) lastSeen() int64 {
	text, err := os.ReadFile(filepath.Join(s.directory, seenFile))
	if err != nil || len(text) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(text)) //nolint:gosec // as it was written
}

// heartbeatInterval is the precision of a gap's beginning.
const heartbeatInterval = 20 * time.Millisecond

// WriteHeartbeat records every 20 ms that the worker runs, until ctx ends. It must begin only after Restore has
// recorded the gap before.
func (m *Manager) WriteHeartbeat(ctx context.Context) error {
	file, err := os.OpenFile(filepath.Join(m.store.directory, seenFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	defer file.Close()
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		var text [8]byte
		binary.LittleEndian.PutUint64(text[:], uint64(clock.Realtime())) //nolint:gosec // after 1970
		if _, err := file.WriteAt(text[:], 0); err != nil {
			return fmt.Errorf("state folder: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
