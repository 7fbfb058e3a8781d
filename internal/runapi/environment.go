package runapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/wording"
)

// Environment is the part of the run record that a spec cannot define: the versions of the platform and the cluster, the hosts, and
// the images. Settings that radiod made in the nodes' namespaces are in the hosts' radio logs, as RadioHeaders.
type Environment struct {
	Platform Platform `json:"platform"`
	// Kubernetes is the version of the API server, such as v1.34.1.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Hosts that ran nodes, in order of their names.
	Hosts []Host `json:"hosts,omitempty"`
	// Images of the platform and of the nodes' containers.
	Images []Image `json:"images,omitempty"`
}

// Platform has the versions of vignette itself.
type Platform struct {
	// Version of the platform and Chart that installed it, such as 0.1.0 and vignette-0.1.0.
	Version string `json:"version,omitempty"`
	Chart   string `json:"chart,omitempty"`
	// Operator is the revision of the source that the operator was built from.
	Operator string `json:"operator,omitempty"`
}

// Host is a Kubernetes node. Fields that its kubelet does not report are empty.
type Host struct {
	Name string `json:"name"`
	// Nodes of the experiment that ran on it.
	Nodes        []string `json:"nodes,omitempty"`
	Kernel       string   `json:"kernel,omitempty"`
	OS           string   `json:"os,omitempty"`
	Architecture string   `json:"architecture,omitempty"`
	CPUs         int64    `json:"cpus,omitempty"`
	// CPUModel as the kernel names it, reported by radiod.
	CPUModel    string `json:"cpuModel,omitempty"`
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	// TCPCongestionControl of the experiment's nodes there, reported by radiod.
	TCPCongestionControl string `json:"tcpCongestionControl,omitempty"`
	// BootID differs after each boot.
	BootID           string `json:"bootID,omitempty"`
	Kubelet          string `json:"kubelet,omitempty"`
	ContainerRuntime string `json:"containerRuntime,omitempty"`
}

// Image is the image of one container.
type Image struct {
	// Node of the experiment; empty for a part of the platform.
	Node string `json:"node,omitempty"`
	// Host of a part of the platform that runs on every host.
	Host string `json:"host,omitempty"`
	// Container: the app's name, agent, operator, server and the containers beside it, radiod, collect or analyse.
	Container string `json:"container"`
	// Image as requested, such as registry.example/app:1.2.
	Image string `json:"image"`
	// ID by the container runtime: REPOSITORY@sha256:… for an image from a registry, sha256:… for one loaded into the host,
	// which no other host can pull.
	ID string `json:"id"`
}

// Digest sha256:… by which every host can pull the image; ok is false if the image came from no registry.
func (i Image) Digest() (digest string, ok bool) {
	_, digest, ok = strings.Cut(i.ID, "@")
	return digest, ok
}

// UnmarshalJSON also reads the flat map of the first records.
func (e *Environment) UnmarshalJSON(text []byte) error {
	var flat map[string]string
	if json.Unmarshal(text, &flat) == nil {
		*e = fromFlatMap(flat)
		return nil
	}
	type plain Environment
	return json.Unmarshal(text, (*plain)(e))
}

// fromFlatMap reads operator, host/NODE, image/NODE/CONTAINER ("IMAGE ID"), kernel/HOST, kubelet/HOST and runtime/HOST.
func fromFlatMap(flat map[string]string) (e Environment) {
	hosts := map[string]*Host{}
	host := func(name string) *Host {
		if hosts[name] == nil {
			hosts[name] = &Host{Name: name}
		}
		return hosts[name]
	}
	for key, value := range flat {
		kind, name, _ := strings.Cut(key, "/")
		switch kind {
		case "operator":
			e.Platform.Operator = value
		case "host":
			host(value).Nodes = append(host(value).Nodes, name)
		case "kernel":
			host(name).Kernel = value
		case "kubelet":
			host(name).Kubelet = value
		case "runtime":
			host(name).ContainerRuntime = value
		case "image":
			node, container, _ := strings.Cut(name, "/")
			image, id, _ := strings.Cut(value, " ")
			e.Images = append(e.Images, Image{Node: node, Container: container, Image: image, ID: id})
		}
	}
	for _, h := range hosts {
		e.Hosts = append(e.Hosts, *h)
	}
	e.Sort()
	return e
}

// Sort brings hosts and images into the order in which they are written.
func (e *Environment) Sort() {
	slices.SortFunc(e.Hosts, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	for i := range e.Hosts {
		slices.Sort(e.Hosts[i].Nodes)
	}
	key := func(i Image) string { return i.Node + "/" + i.Container + "/" + i.Host }
	slices.SortFunc(e.Images, func(a, b Image) int { return strings.Compare(key(a), key(b)) })
}

// Rerun names the run that another one repeats, or is based on.
type Rerun struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid"`
	// Differences between the environment and inputs of the recorded run and of the cluster, when the rerun was created.
	Differences []Difference `json:"differences,omitempty"`
	// Changes of the recorded run's spec; absent without changes, or if that spec is not known.
	Changes []SpecChange `json:"changes,omitempty"`
	// MoreChanges that have no place in Changes.
	MoreChanges int `json:"moreChanges,omitempty"`
	// Spec of a rerun without changes, as compressed JSON; only in an experiment's annotation.
	Spec []byte `json:"spec,omitempty"`
}

// SpecChange of a field; an absent value is empty.
type SpecChange struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Difference between a recorded run and a cluster.
type Difference struct {
	// What differs, such as "host n1: kernel".
	What   string `json:"what"`
	Before string `json:"before"`
	Now    string `json:"now"`
}

// CheckVersion refuses files of a later version of this program, as they may mean something else. Latest is the version written now.
func CheckVersion(name string, version, latest int) error {
	switch {
	case version > latest:
		return fmt.Errorf("%s has schemaVersion %d, and this program reads versions up to %d: use a newer one", name, version, latest)
	case version < 1:
		return fmt.Errorf("%s has no schemaVersion, or %d: want 1 to %d", name, version, latest)
	}
	return nil
}

// ReadRunRecord reads run.json of this version or an older one; name is for errors.
func ReadRunRecord(name string, text []byte) (RunRecord, error) {
	var version struct {
		SchemaVersion int `json:"schemaVersion"`
	}
	var record RunRecord
	if err := json.Unmarshal(text, &version); err != nil {
		return record, noRunRecord(name, err)
	}
	if err := CheckVersion(name, version.SchemaVersion, SchemaVersion); err != nil {
		return record, err
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return record, noRunRecord(name, err)
	}
	if record.UID == "" || record.Name == "" {
		return record, fmt.Errorf("%s is not a run record: it has no uid or no name", name)
	}
	return record, nil
}

// noRunRecord says why a text cannot be decoded as one.
func noRunRecord(name string, err error) error {
	if _, what := wording.JSONFault(err); what != "" {
		return fmt.Errorf("%s is not a run record: %s", name, what)
	}
	return fmt.Errorf("%s is not a run record: one of its values cannot be read: %w", name, err)
}
