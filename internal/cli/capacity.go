package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/queue"
)

func newCapacity(t *target) *cobra.Command {
	output := "table"
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Show free capacity and the admission queue",
		Long: "capacity shows what is free on every host and in total, what is left of each team's quotas, and the admission queue in\n" +
			"order, with the reason why each experiment waits, and the namespace's share of the archive.\n" +
			"It shows what you may read, and names what you may not read.",
		Example: "  vignette capacity\n" +
			"  vignette capacity -o json | jq .queue",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: want table or json", output)
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			seen, err := c.readVisibleState(cmd.Context())
			if err != nil {
				return err
			}
			report := capacityOf(seen)
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(report)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), report.text(time.Now()))
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "`form`: table or json")
	complete(cmd, "output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// visibleState is what the API server shows the user.
type visibleState struct {
	nodes       []corev1.Node
	pods        []corev1.Pod
	quotas      []corev1.ResourceQuota
	experiments []v1alpha1.Experiment
	// usage of the archive by the requested namespace, or why it is unknown.
	usage      *runapi.Usage
	usageError string
	// notShown names what the user may not read.
	notShown []string
	// namespace of the request.
	namespace string
	// The namespaces whose quotas and experiments are visible; with those of all, the queue is complete.
	quotasOf, experimentsOf extent
}

// extent of what the user may read.
type extent int

const (
	ofNone extent = iota
	ofOwnNamespace
	ofAllNamespaces
)

// hasQuotasOf reports whether the absence of quotas of a namespace means that it has none.
func (s *visibleState) hasQuotasOf(namespace string) bool {
	return s.quotasOf == ofAllNamespaces || s.quotasOf == ofOwnNamespace && namespace == s.namespace
}

// readVisibleState reads all namespaces, or else the requested one.
func (c *cluster) readVisibleState(ctx context.Context) (visibleState, error) {
	s := visibleState{namespace: c.namespace}
	var nodes corev1.NodeList
	var pods corev1.PodList
	var quotas corev1.ResourceQuotaList
	var experiments v1alpha1.ExperimentList
	for _, what := range []struct {
		name string
		list client.ObjectList
		// of is nil for what is useful only if complete.
		of *extent
	}{{"nodes", &nodes, nil}, {"pods", &pods, nil}, {"resource quotas", &quotas, &s.quotasOf}, {"experiments", &experiments, &s.experimentsOf}} {
		readable, name := ofAllNamespaces, what.name
		err := c.kube.List(ctx, what.list)
		if apierrors.IsForbidden(err) && what.of != nil {
			s.notShown = append(s.notShown, fmt.Sprintf("%s of namespaces other than %s", name, c.namespace))
			readable, name = ofOwnNamespace, name+" of namespace "+c.namespace
			err = c.kube.List(ctx, what.list, client.InNamespace(c.namespace))
		}
		if apierrors.IsForbidden(err) {
			readable, s.notShown, err = ofNone, append(s.notShown, name), nil
		}
		if err != nil {
			return s, explain(err)
		}
		if what.of != nil {
			*what.of = readable
		}
	}
	usage, err := c.archive.Usage(ctx, c.namespace)
	if s.usage = &usage; err != nil {
		s.usage, s.usageError = nil, explain(err).Error()
	}
	s.nodes, s.pods, s.quotas, s.experiments = nodes.Items, pods.Items, quotas.Items, experiments.Items
	return s, nil
}

// resourceAmounts of a host, or of all of them.
type resourceAmounts struct {
	// CPU in cores, memory in bytes.
	CPU         float64 `json:"cpu"`
	MemoryBytes int64   `json:"memoryBytes"`
	Pods        int64   `json:"pods"`
}

func (r *resourceAmounts) add(list corev1.ResourceList, pods, sign int64) {
	r.CPU += float64(sign*list.Cpu().MilliValue()) / 1000
	r.MemoryBytes += sign * list.Memory().Value()
	r.Pods += sign * pods
}

type hostCapacity struct {
	Name string `json:"name"`
	// Usable hosts accept pods: ready, not cordoned, not tainted.
	Usable      bool            `json:"usable"`
	Allocatable resourceAmounts `json:"allocatable"`
	// Free is absent if the pods may not be read.
	Free *resourceAmounts `json:"free,omitempty"`
}

type quotaCapacity struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Hard     string `json:"hard"`
	Used     string `json:"used"`
	Free     string `json:"free"`
}

type teamCapacity struct {
	Namespace string `json:"namespace"`
	Running   int    `json:"running"`
	Queued    int    `json:"queued"`
	// Quotas are null if they may not be read.
	Quotas []quotaCapacity `json:"quotas"`
}

type queuedExperiment struct {
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

// capacityReport is the output of `vignette capacity -o json`.
type capacityReport struct {
	SchemaVersion int `json:"schemaVersion"`
	// Hosts, and the sum of all usable ones.
	Hosts []hostCapacity     `json:"hosts"`
	All   *hostCapacity      `json:"all,omitempty"`
	Teams []teamCapacity     `json:"teams"`
	Queue []queuedExperiment `json:"queue"`
	// Archive is the requested namespace's share of the archive; if it is unknown, ArchiveProblem says why.
	Archive        *runapi.Usage `json:"archive,omitempty"`
	ArchiveProblem string        `json:"archiveProblem,omitempty"`
	// PositionsRounded is set if positions beyond 10 are rounded up, as part of the queue may not be read.
	PositionsRounded bool     `json:"positionsRounded,omitempty"`
	NotShown         []string `json:"notShown"`
	// emptyQueueText is what an empty queue means.
	emptyQueueText string
}

func capacityOf(s visibleState) capacityReport {
	report := capacityReport{SchemaVersion: 1, Hosts: []hostCapacity{}, Teams: teamsOf(s), Queue: queueOf(s), PositionsRounded: s.experimentsOf != ofAllNamespaces, NotShown: []string{}}
	switch s.experimentsOf {
	case ofAllNamespaces:
		report.emptyQueueText = "Nobody waits."
	case ofOwnNamespace:
		report.emptyQueueText = "Nobody waits in namespace " + s.namespace + "."
	default:
		report.emptyQueueText = "Who waits is not shown: you may read no experiments."
	}
	report.NotShown = append(report.NotShown, s.notShown...)
	report.Archive, report.ArchiveProblem = s.usage, s.usageError
	withPods := !slices.Contains(s.notShown, "pods")
	used := map[string]*resourceAmounts{}
	for i := range s.pods {
		pod := &s.pods[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if used[pod.Spec.NodeName] == nil {
			used[pod.Spec.NodeName] = &resourceAmounts{}
		}
		used[pod.Spec.NodeName].add(queue.Requests(&pod.Spec), 1, 1)
	}
	if len(s.nodes) > 0 {
		report.All = &hostCapacity{Name: "all", Usable: true}
	}
	if len(s.nodes) > 0 && withPods {
		report.All.Free = &resourceAmounts{}
	}
	for i := range s.nodes {
		node := &s.nodes[i]
		host := hostCapacity{Name: node.Name, Usable: queue.TakesPods(node)}
		host.Allocatable.add(node.Status.Allocatable, node.Status.Allocatable.Pods().Value(), 1)
		if withPods {
			host.Free = &resourceAmounts{}
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
	slices.SortFunc(report.Hosts, func(a, b hostCapacity) int { return cmp.Compare(a.Name, b.Name) })
	return report
}

func (h *hostCapacity) sum(host *hostCapacity) {
	h.Allocatable.addAmounts(host.Allocatable)
	if host.Free != nil {
		h.Free.addAmounts(*host.Free)
	}
}

func (r *resourceAmounts) addAmounts(other resourceAmounts) {
	r.CPU, r.MemoryBytes, r.Pods = r.CPU+other.CPU, r.MemoryBytes+other.MemoryBytes, r.Pods+other.Pods
}

func teamsOf(s visibleState) []teamCapacity {
	teams := map[string]*teamCapacity{}
	team := func(namespace string) *teamCapacity {
		if teams[namespace] == nil {
			teams[namespace] = &teamCapacity{Namespace: namespace}
			if s.hasQuotasOf(namespace) {
				teams[namespace].Quotas = []quotaCapacity{}
			}
		}
		return teams[namespace]
	}
	for i := range s.experiments {
		e := &s.experiments[i]
		switch {
		case isQueued(e):
			team(e.Namespace).Queued++
		case e.Status.Phase != v1alpha1.PhaseSucceeded && e.Status.Phase != v1alpha1.PhaseFailed:
			team(e.Namespace).Running++
		}
	}
	for i := range s.quotas {
		q := &s.quotas[i]
		if q.Namespace != s.namespace && teams[q.Namespace] == nil && !slices.ContainsFunc(s.experiments, func(e v1alpha1.Experiment) bool { return e.Namespace == q.Namespace }) {
			continue // not a team's namespace: nobody has experiments there
		}
		for name, hard := range q.Status.Hard {
			used := q.Status.Used[name]
			free := hard.DeepCopy()
			free.Sub(used)
			team(q.Namespace).Quotas = append(team(q.Namespace).Quotas,
				quotaCapacity{Name: q.Name, Resource: string(name), Hard: hard.String(), Used: used.String(), Free: free.String()})
		}
	}
	all := []teamCapacity{}
	for _, t := range teams {
		slices.SortFunc(t.Quotas, func(a, b quotaCapacity) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Resource, b.Resource))
		})
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b teamCapacity) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}

func isQueued(e *v1alpha1.Experiment) bool {
	return e.Status.Phase == v1alpha1.PhaseQueued || e.Status.Phase == ""
}

// queueOf the waiting experiments, in order; those without a position are at the end.
func queueOf(s visibleState) []queuedExperiment {
	var waiting []*v1alpha1.Experiment
	for i := range s.experiments {
		if isQueued(&s.experiments[i]) {
			waiting = append(waiting, &s.experiments[i])
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
	all := []queuedExperiment{}
	for i, e := range waiting {
		entry := queuedExperiment{
			Position: position(e), Namespace: e.Namespace, Name: e.Name, Priority: e.Spec.Priority, QueueName: e.Spec.QueueName, Nodes: e.Status.Nodes.Total,
			Since: e.CreationTimestamp.UTC(), Reason: "New", Message: "the operator has not looked at it yet",
		}
		if entry.Position > 0 && s.experimentsOf == ofAllNamespaces {
			entry.Position = int32(i + 1)
		}
		if e.Status.Queue != nil && e.Status.Queue.ExpectedStart != nil {
			start := e.Status.Queue.ExpectedStart.UTC()
			entry.ExpectedStart = &start
		}
		for _, kind := range []string{v1alpha1.ConditionAdmitted, v1alpha1.ConditionAccepted} { // a missing acceptance matters more
			if c := meta.FindStatusCondition(e.Status.Conditions, kind); c != nil && c.Status == "False" {
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
	of := func(e *v1alpha1.Experiment) *queue.Identity {
		return &queue.Identity{Namespace: e.Namespace, Name: e.Name, Created: e.CreationTimestamp.Time, Priority: e.Spec.Priority}
	}
	return of(a).Before(of(b))
}

func (r capacityReport) text(now time.Time) string {
	parts := []string{}
	if len(r.Hosts) > 0 {
		hosts := table{figures("HOST", "CPU FREE", "OF", "MEMORY FREE", "OF", "PODS FREE", "OF")}
		for _, h := range r.Hosts {
			hosts = append(hosts, h.row())
		}
		if len(r.Hosts) > 1 {
			hosts = append(hosts, r.All.row())
		}
		parts = append(parts, hosts.String())
	}
	if len(r.Teams) > 0 {
		teams := table{append(figures("TEAM", "RUNNING", "QUEUED"), append(left("QUOTA", "RESOURCE"), figures("FREE", "USED", "HARD")...)...)}
		for _, t := range r.Teams {
			teams = append(teams, t.rows()...)
		}
		parts = append(parts, teams.String())
	}
	if len(r.Queue) > 0 {
		parts = append(parts, r.queueTable(now))
	} else {
		parts = append(parts, r.emptyQueueText+"\n")
	}
	if r.Archive != nil {
		parts = append(parts, archiveText(r.Archive))
	} else if r.ArchiveProblem != "" {
		parts = append(parts, "The team's part of the archive is not known: "+r.ArchiveProblem+"\n")
	}
	if len(r.NotShown) > 0 {
		parts = append(parts, "Not shown, because you may not read it: "+strings.Join(r.NotShown, "; ")+".\n")
	}
	return strings.Join(parts, "\n")
}

// archiveText describes a team's share of the archive, its quota and its retention.
func archiveText(u *runapi.Usage) string {
	gib := func(bytes int64) string { return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 2, 64) + " GiB" }
	text := fmt.Sprintf("Archive of %s: %d runs with %s", u.Namespace, u.Runs, gib(u.Bytes))
	if u.QuotaBytes > 0 {
		text += " of " + gib(u.QuotaBytes)
	}
	if u.RetentionSeconds > 0 {
		text += ", each kept for " + duration.HumanDuration(time.Duration(u.RetentionSeconds*float64(time.Second))) + " after it ended"
	}
	if u.QuotaBytes > 0 && u.Bytes >= u.QuotaBytes {
		text += ". No run begins before some are deleted"
	}
	return text + ".\n"
}

func (h *hostCapacity) row() []cell {
	name, free := h.Name, []string{"?", "?", "?"}
	if !h.Usable {
		name += " (takes no pods)"
	}
	if h.Free != nil {
		free = h.Free.texts()
	}
	all := h.Allocatable.texts()
	return figures(name, free[0], all[0], free[1], all[1], free[2], all[2])
}

func (r resourceAmounts) texts() []string {
	return []string{
		strconv.FormatFloat(r.CPU, 'f', 2, 64), strconv.FormatFloat(float64(r.MemoryBytes)/(1<<30), 'f', 2, 64) + " GiB", strconv.FormatInt(r.Pods, 10),
	}
}

func (t *teamCapacity) rows() (rows table) {
	head := func() []cell { return figures(t.Namespace, strconv.Itoa(t.Running), strconv.Itoa(t.Queued)) }
	for i, q := range t.Quotas {
		first := figures("", "", "")
		if i == 0 {
			first = head()
		}
		resourceAmounts := figures(readableAmount(q.Resource, q.Free), readableAmount(q.Resource, q.Used), readableAmount(q.Resource, q.Hard))
		resourceAmounts[0].right = true
		rows = append(rows, append(first, append(left(q.Name, q.Resource), resourceAmounts...)...))
	}
	if t.Quotas == nil {
		rows = append(rows, append(head(), left("?")...))
	} else if len(rows) == 0 {
		rows = append(rows, append(head(), left("none")...))
	}
	return rows
}

// readableAmount writes amounts of memory and storage in GiB.
func readableAmount(name, value string) string {
	quantity, err := resource.ParseQuantity(value)
	if err != nil || !strings.HasSuffix(name, "memory") && !strings.HasSuffix(name, "storage") {
		return value
	}
	return strconv.FormatFloat(quantity.AsApproximateFloat64()/(1<<30), 'f', 2, 64) + " GiB"
}

func (r capacityReport) queueTable(now time.Time) string {
	rows := table{append(figures("QUEUE"), left("EXPERIMENT", "PRIORITY", "NODES", "WAITED", "EXPECTED", "REASON", "MESSAGE")...)}
	for _, e := range r.Queue {
		place, expected := "-", "-"
		if e.Position > 0 {
			place = strconv.Itoa(int(e.Position))
		}
		if e.Position > 10 && r.PositionsRounded {
			place = "≤ " + place
		}
		if e.QueueName != "" {
			place = "Kueue " + e.QueueName
		}
		if e.ExpectedStart != nil {
			expected = "in " + duration.HumanDuration(max(e.ExpectedStart.Sub(now), 0))
		}
		cells := left(e.Namespace+"/"+e.Name, strconv.Itoa(int(e.Priority)), strconv.Itoa(int(e.Nodes)), duration.HumanDuration(now.Sub(e.Since)), expected, e.Reason, oneLine(e.Message))
		rows = append(rows, append(left(place), cells...))
	}
	return rows.String()
}
