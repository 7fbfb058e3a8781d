// Package capacity computes what is free in a cluster, what teams use of their quotas, and who waits, from what a user may read.
// It is `vignette capacity` and the web console's.
package capacity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/requirements"
	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// State is what the API server shows the user.
type State struct {
	Nodes       []corev1.Node
	Pods        []corev1.Pod
	Quotas      []corev1.ResourceQuota
	Experiments []v1alpha1.Experiment
	// Usage of the archive by the requested namespace, or why it is unknown.
	Usage      *runapi.Usage
	UsageError string
	// NotShown names what the user may not read.
	NotShown []string
	// Namespace of the request.
	Namespace string
	// The namespaces whose quotas and experiments are visible; with those of all, the queue is complete.
	QuotasOf, ExperimentsOf Extent
}

// Extent of what the user may read.
type Extent int

// Extents: nothing, the requested namespace, all namespaces.
const (
	OfNone Extent = iota
	OfOwnNamespace
	OfAllNamespaces
)

// hasQuotasOf reports whether the absence of quotas of a namespace means that it has none.
func (s *State) hasQuotasOf(namespace string) bool {
	return s.QuotasOf == OfAllNamespaces || s.QuotasOf == OfOwnNamespace && namespace == s.Namespace
}

// Reader reads what a user may see of a cluster.
type Reader struct {
	Kube client.Reader
	// Archive of the namespace.
	Archive *runclient.Client
	// Namespace to read where the user may not read all.
	Namespace string
	// Explain adds words for users to an error.
	Explain func(error) error
}

// Read all namespaces, or else the requested one.
func (r Reader) Read(ctx context.Context) (State, error) {
	s := State{Namespace: r.Namespace}
	var nodes corev1.NodeList
	var pods corev1.PodList
	var quotas corev1.ResourceQuotaList
	var experiments v1alpha1.ExperimentList
	for _, what := range []struct {
		name string
		list client.ObjectList
		// of is nil for what is useful only if complete.
		of *Extent
	}{{"nodes", &nodes, nil}, {"pods", &pods, nil}, {"resource quotas", &quotas, &s.QuotasOf}, {"experiments", &experiments, &s.ExperimentsOf}} {
		extent, err := r.list(ctx, what.name, what.list, what.of != nil, &s)
		if err != nil {
			return s, r.Explain(err)
		}
		if what.of != nil {
			*what.of = extent
		}
	}
	usage, err := r.Archive.Usage(ctx, r.Namespace)
	if s.Usage = &usage; err != nil {
		s.Usage, s.UsageError = nil, r.Explain(err).Error()
	}
	s.Nodes, s.Pods, s.Quotas, s.Experiments = nodes.Items, pods.Items, quotas.Items, experiments.Items
	return s, nil
}

// list objects of all namespaces. If that is refused and partUseful is set, it lists those of the requested namespace.
// NotShown names what was refused.
func (r Reader) list(ctx context.Context, name string, list client.ObjectList, partUseful bool, s *State) (Extent, error) {
	extent := OfAllNamespaces
	err := r.Kube.List(ctx, list)
	if apierrors.IsForbidden(err) && partUseful {
		s.NotShown = append(s.NotShown, fmt.Sprintf("%s of namespaces other than %s", name, r.Namespace))
		extent, name = OfOwnNamespace, name+" of namespace "+r.Namespace
		err = r.Kube.List(ctx, list, client.InNamespace(r.Namespace))
	}
	if apierrors.IsForbidden(err) {
		s.NotShown = append(s.NotShown, name)
		return OfNone, nil
	}
	return extent, err
}

// Amounts of a host, or of all of them.
type Amounts struct {
	// CPU in cores, memory in bytes.
	CPU         float64 `json:"cpu"`
	MemoryBytes int64   `json:"memoryBytes"`
	Pods        int64   `json:"pods"`
}

func (r *Amounts) add(list corev1.ResourceList, pods, sign int64) {
	r.CPU += float64(sign*list.Cpu().MilliValue()) / 1000
	r.MemoryBytes += sign * list.Memory().Value()
	r.Pods += sign * pods
}

// Host is a machine of the cluster, or all of them.
type Host struct {
	Name string `json:"name"`
	// Usable hosts run nodes of experiments: ready, not cordoned, not tainted, not kept free of them.
	Usable      bool    `json:"usable"`
	Allocatable Amounts `json:"allocatable"`
	// Free is absent if the pods may not be read.
	Free *Amounts `json:"free,omitempty"`
}

// Quota of a team for one resource.
type Quota struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Hard     string `json:"hard"`
	Used     string `json:"used"`
	Free     string `json:"free"`
}

// Team is the users of a namespace that has experiments.
type Team struct {
	Namespace string `json:"namespace"`
	Running   int    `json:"running"`
	Queued    int    `json:"queued"`
	// Requested is what the pods of the namespace request; absent if pods may not be read.
	Requested *Amounts `json:"requested,omitempty"`
	// Quotas are null if they may not be read.
	Quotas []Quota `json:"quotas" openapi:"nullable"`
}

// Queued is an experiment that waits.
type Queued struct {
	// Position in the queue of the cluster; 0 for none: it can never start, is not accepted, or waits for Kueue.
	Position      int32      `json:"position"`
	Namespace     string     `json:"namespace"`
	Name          string     `json:"name"`
	Priority      int32      `json:"priority"`
	QueueName     string     `json:"queueName,omitempty"`
	Nodes         int32      `json:"nodes"`
	Since         time.Time  `json:"since"`
	ExpectedStart *time.Time `json:"expectedStart,omitempty"`
	Reason        string     `json:"reason"`
	Message       string     `json:"message"`
}

// Report is the output of `vignette capacity -o json`.
type Report struct {
	SchemaVersion int `json:"schemaVersion"`
	// Hosts, and the sum of all usable ones.
	Hosts []Host `json:"hosts"`
	All   *Host  `json:"all,omitempty"`
	// KeptForWorkflows is the part of what is free that the queue keeps for workflows of running experiments. Absent if there
	// are none, or the user may not read all pods and experiments.
	KeptForWorkflows *Amounts `json:"keptForWorkflows,omitempty"`
	Teams            []Team   `json:"teams"`
	Queue            []Queued `json:"queue"`
	// Archive is the requested namespace's share of the archive; if it is unknown, ArchiveProblem says why.
	Archive        *runapi.Usage `json:"archive,omitempty"`
	ArchiveProblem string        `json:"archiveProblem,omitempty"`
	// PositionsRounded is set if positions beyond 10 are rounded up, as part of the queue may not be read.
	PositionsRounded bool     `json:"positionsRounded,omitempty"`
	NotShown         []string `json:"notShown"`
	// EmptyQueueText is what an empty queue means.
	EmptyQueueText string `json:"-"`
}

// Of a state, what is free and who waits.
func Of(s State) Report {
	report := Report{SchemaVersion: 1, Hosts: []Host{}, Teams: teamsOf(s), Queue: queueOf(s), PositionsRounded: s.ExperimentsOf != OfAllNamespaces, NotShown: []string{}}
	switch s.ExperimentsOf {
	case OfAllNamespaces:
		report.EmptyQueueText = "Nobody waits."
	case OfOwnNamespace:
		report.EmptyQueueText = "Nobody waits in namespace " + s.Namespace + "."
	default:
		report.EmptyQueueText = "Who waits is not shown: you may read no experiments."
	}
	report.NotShown = append(report.NotShown, s.NotShown...)
	report.Archive, report.ArchiveProblem = s.Usage, s.UsageError
	withPods := !slices.Contains(s.NotShown, "pods")
	used := requestedBy(s.Pods, func(pod *corev1.Pod) string { return pod.Spec.NodeName })
	if len(s.Nodes) > 0 {
		report.All = &Host{Name: "all", Usable: true}
	}
	if len(s.Nodes) > 0 && withPods {
		report.All.Free = &Amounts{}
	}
	for i := range s.Nodes {
		node := &s.Nodes[i]
		host := Host{Name: node.Name, Usable: queue.TakesPods(node)}
		host.Allocatable.add(node.Status.Allocatable, node.Status.Allocatable.Pods().Value(), 1)
		if withPods {
			host.Free = &Amounts{}
			*host.Free = host.Allocatable
			if taken := used[node.Name]; taken != nil {
				host.Free.CPU, host.Free.MemoryBytes, host.Free.Pods = host.Free.CPU-taken.CPU, host.Free.MemoryBytes-taken.MemoryBytes, host.Free.Pods-taken.Pods
			}
		}
		report.Hosts = append(report.Hosts, host)
		if host.Usable {
			report.All.sum(&host)
		}
	}
	slices.SortFunc(report.Hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	if withPods && s.ExperimentsOf == OfAllNamespaces {
		report.KeptForWorkflows = keptForWorkflows(s)
	}
	return report
}

// keptForWorkflows is the room of one pod for each running experiment whose workflow has none; nil without any.
func keptForWorkflows(s State) *Amounts {
	has := map[types.NamespacedName]bool{}
	for i := range s.Pods {
		if pod := &s.Pods[i]; pod.Labels[render.LabelWorkflow] != "" && pod.Spec.NodeName != "" && !requirements.PodEnded(pod) {
			has[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[render.LabelWorkflow]}] = true
		}
	}
	kept := Amounts{}
	for i := range s.Experiments {
		if e := &s.Experiments[i]; requirements.IsAdmitted(e) && !requirements.IsOver(e) && !has[client.ObjectKeyFromObject(e)] {
			kept.add(queue.Requests(&queue.WorkflowPod().Spec), 1, 1)
		}
	}
	if kept == (Amounts{}) {
		return nil
	}
	return &kept
}

// requestedBy returns what scheduled pods that have not ended request, by a key of theirs.
func requestedBy(pods []corev1.Pod, key func(*corev1.Pod) string) map[string]*Amounts {
	used := map[string]*Amounts{}
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == "" || requirements.PodEnded(pod) {
			continue
		}
		if used[key(pod)] == nil {
			used[key(pod)] = &Amounts{}
		}
		used[key(pod)].add(queue.Requests(&pod.Spec), 1, 1)
	}
	return used
}

func (h *Host) sum(host *Host) {
	h.Allocatable.addAmounts(host.Allocatable)
	if host.Free != nil {
		h.Free.addAmounts(*host.Free)
	}
}

func (r *Amounts) addAmounts(other Amounts) {
	r.CPU, r.MemoryBytes, r.Pods = r.CPU+other.CPU, r.MemoryBytes+other.MemoryBytes, r.Pods+other.Pods
}

func teamsOf(s State) []Team {
	teams := map[string]*Team{}
	team := func(namespace string) *Team {
		if teams[namespace] == nil {
			teams[namespace] = &Team{Namespace: namespace}
			if s.hasQuotasOf(namespace) {
				teams[namespace].Quotas = []Quota{}
			}
		}
		return teams[namespace]
	}
	for i := range s.Experiments {
		e := &s.Experiments[i]
		switch {
		case IsQueued(e):
			team(e.Namespace).Queued++
		case e.Status.Phase != v1alpha1.PhaseSucceeded && e.Status.Phase != v1alpha1.PhaseFailed:
			team(e.Namespace).Running++
		}
	}
	for i := range s.Quotas {
		q := &s.Quotas[i]
		if q.Namespace != s.Namespace && teams[q.Namespace] == nil && !slices.ContainsFunc(s.Experiments, func(e v1alpha1.Experiment) bool { return e.Namespace == q.Namespace }) {
			continue // not a team's namespace: nobody has experiments there
		}
		for name, hard := range q.Status.Hard {
			used := q.Status.Used[name]
			free := hard.DeepCopy()
			free.Sub(used)
			team(q.Namespace).Quotas = append(team(q.Namespace).Quotas,
				Quota{Name: q.Name, Resource: string(name), Hard: hard.String(), Used: used.String(), Free: free.String()})
		}
	}
	requested := requestedBy(s.Pods, func(pod *corev1.Pod) string { return pod.Namespace })
	all := []Team{}
	for _, t := range teams {
		if !slices.Contains(s.NotShown, "pods") {
			t.Requested = &Amounts{}
			if of := requested[t.Namespace]; of != nil {
				t.Requested = of
			}
		}
		slices.SortFunc(t.Quotas, func(a, b Quota) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Resource, b.Resource))
		})
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Team) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}

// IsQueued reports whether an experiment waits for its start.
func IsQueued(e *v1alpha1.Experiment) bool { return !requirements.IsAdmitted(e) }

// queueOf the waiting experiments, in order; those without a position are at the end.
func queueOf(s State) []Queued {
	var waiting []*v1alpha1.Experiment
	for i := range s.Experiments {
		if IsQueued(&s.Experiments[i]) {
			waiting = append(waiting, &s.Experiments[i])
		}
	}
	slices.SortFunc(waiting, func(a, b *v1alpha1.Experiment) int {
		switch {
		case (a.Status.Queue == nil) != (b.Status.Queue == nil):
			return cmp.Compare(position(b), position(a))
		case isBefore(a, b):
			return -1
		}
		return 1
	})
	all := []Queued{}
	for i, e := range waiting {
		entry := Queued{
			Position: position(e), Namespace: e.Namespace, Name: e.Name, Priority: e.Spec.Priority, QueueName: e.Spec.QueueName, Nodes: e.Status.Nodes.Total,
			Since: e.CreationTimestamp.UTC(), Reason: "New", Message: "the operator has not looked at it yet",
		}
		if entry.Position > 0 && s.ExperimentsOf == OfAllNamespaces {
			entry.Position = int32(i + 1)
		}
		if e.Status.Queue != nil && e.Status.Queue.ExpectedStart != nil {
			start := e.Status.Queue.ExpectedStart.UTC()
			entry.ExpectedStart = &start
		}
		for _, kind := range []string{v1alpha1.ConditionAdmitted, v1alpha1.ConditionAccepted} { // a missing acceptance matters more
			if c := meta.FindStatusCondition(e.Status.Conditions, kind); c != nil && c.Status != "True" {
				entry.Reason, entry.Message = c.Reason, c.Message
			}
		}
		all = append(all, entry)
	}
	return all
}

func position(e *v1alpha1.Experiment) int32 {
	if e.Status.Queue == nil {
		return 0
	}
	return e.Status.Queue.Position
}

func isBefore(a, b *v1alpha1.Experiment) bool {
	one, other := requirements.IdentityOf(a), requirements.IdentityOf(b)
	return one.Before(&other)
}
