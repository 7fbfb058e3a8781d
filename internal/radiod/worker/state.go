package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// record is what outlives the worker of one attachment.
type record struct {
	PodUID        string `json:"podUID"`
	PodNamespace  string `json:"podNamespace"`
	PodName       string `json:"podName"`
	ContainerID   string `json:"containerID"`
	Interface     string `json:"interface"`
	Configuration string `json:"configuration"`
	// NamespacePath on the host and Namespace, the identity that what lies there must have.
	NamespacePath string         `json:"namespacePath"`
	Namespace     netns.Identity `json:"namespace"`
	// Index of the interface in the pod's namespace.
	Index int `json:"index"`
	// NetworkUID of the RadioNetwork, and the member that the attachment is.
	NetworkUID string          `json:"networkUID"`
	Member     v1alpha1.Member `json:"member"`
	// Gateways of the pod's default routes, from which a node without an address there may probe.
	Gateways []string `json:"gateways,omitempty"`
	// Pinned: the descriptor was opened in the pod's namespace and keeps it alive.
	Pinned bool `json:"pinned,omitempty"`
	// Settings of the kernel in the namespace, for the run record.
	Settings map[string]string `json:"settings,omitempty"`
}

func (r *record) key() memberKey { return memberKey{r.PodUID, r.Interface} }

// id names the attachment's descriptor at the parent, and its file.
func (r *record) id() string { return r.PodUID + "_" + r.Interface }

// store keeps records and networks as files, one each, so that a new worker carries frames before it
// has reached the API server.
type store struct{ directory string }

const (
	attachmentFiles = "attachments"
	networkFiles    = "networks"
)

func newStore(directory string) (store, error) {
	for _, kind := range []string{attachmentFiles, networkFiles} {
		if err := os.MkdirAll(filepath.Join(directory, kind), 0o700); err != nil {
			return store{}, fmt.Errorf("state folder: %w", err)
		}
	}
	return store{directory}, nil
}

func (s store) path(kind, name string) string {
	return filepath.Join(s.directory, kind, strings.ReplaceAll(name, "/", "_")+".json")
}

// put replaces a file in one step. The folder lies on a tmpfs: what a power cut would lose is gone
// with the namespaces anyway, so nothing is synced.
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

// load reads all files of a kind; broken ones are reported and removed, as nothing can use them.
func load[T any](s store, kind string) (values []T, err error) {
	entries, err := os.ReadDir(filepath.Join(s.directory, kind))
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	var broken error
	for _, entry := range entries {
		path := filepath.Join(s.directory, kind, entry.Name())
		if !strings.HasSuffix(path, ".json") {
			_ = os.Remove(path) // half written when the worker died
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
