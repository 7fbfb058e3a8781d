package queue

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// workflowPods is the number of a workflow's pods beside an experiment's nodes, as only one step runs at a time.
const workflowPods = 1

// WorkflowPod takes as much room as the larger of the workflow's pods, which analyses. Argo adds the containers init and wait.
func WorkflowPod() *corev1.Pod {
	container := func(name, cpu, memory string) corev1.Container {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests}}
	}
	return &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{container("init", "10m", "32Mi")},
		Containers:     []corev1.Container{container("wait", "10m", "32Mi"), container("main", "1m", "256Mi")},
	}}
}

// Kinds of resources that always exist.
const (
	kindPods = iota
	kindMemory
	kindCPU
	kindStorage
)

// ResourceKinds numbers the kinds of resources of hosts and pods. It only grows, so that amounts stay valid.
type ResourceKinds struct {
	mu    sync.RWMutex
	kinds []corev1.ResourceName
}

// NewResourceKinds has pods, memory, processors and ephemeral storage. Other kinds are added when a pod requests them.
func NewResourceKinds() *ResourceKinds {
	return &ResourceKinds{kinds: []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceMemory, corev1.ResourceCPU, corev1.ResourceEphemeralStorage}}
}

// Len is the number of kinds so far.
func (s *ResourceKinds) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.kinds)
}

func (s *ResourceKinds) names() []corev1.ResourceName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds
}

func (s *ResourceKinds) index(name corev1.ResourceName) int {
	if i := slices.Index(s.names(), name); i >= 0 {
		return i
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.kinds, name); i >= 0 {
		return i
	}
	s.kinds = append(slices.Clone(s.kinds), name)
	return len(s.kinds) - 1
}

// requested is the amount of a pod's requests, including the pod itself.
func (s *ResourceKinds) requested(list corev1.ResourceList) Amount {
	amount := make(Amount, s.Len())
	for name, quantity := range list {
		if quantity.IsZero() {
			continue
		}
		i := s.index(name)
		for len(amount) <= i {
			amount = append(amount, 0)
		}
		amount[i] = valueOf(name, quantity)
	}
	amount[kindPods] = 1
	return amount
}

// allocatable is the amount of a host. Ephemeral storage that it does not report is unlimited.
func (s *ResourceKinds) allocatable(list corev1.ResourceList) Amount {
	kinds := s.names()
	amount := make(Amount, len(kinds))
	for i, name := range kinds {
		quantity, reported := list[name]
		amount[i] = valueOf(name, quantity)
		if !reported && name == corev1.ResourceEphemeralStorage {
			amount[i] = Unlimited
		}
	}
	return amount
}

func valueOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// DemandOf is the demand of an experiment's nodes, its workflow, and EMANE's pods for it, before defaults. EMANE's are in the
// platform's namespace: they take room on hosts, and nothing of the quota.
func (s *ResourceKinds) DemandOf(nodes, emane []*corev1.Pod) *Demand {
	return s.demandOf(append(slices.Clip(nodes), WorkflowPod()), emane)
}

// HasEMANE reports whether EMANE's pods are in the demand.
func (d *Demand) HasEMANE() bool { return d != nil && d.emanePods > 0 }

// DemandOfPods is the demand of these pods alone.
func (s *ResourceKinds) DemandOfPods(pods []*corev1.Pod) *Demand { return s.demandOf(pods, nil) }

func (s *ResourceKinds) demandOf(claiming, emane []*corev1.Pod) *Demand {
	d := &Demand{emanePods: int64(len(emane))}
	add := func(pod *corev1.Pod) {
		d.Shapes = append(d.Shapes, Shape{Count: 1, Each: s.requested(Requests(&pod.Spec))})
	}
	for _, pod := range claiming {
		add(pod)
		d.Claim = d.Claim.plus(ClaimOf(&pod.Spec), 1)
	}
	for _, pod := range emane {
		add(pod)
	}
	d.complete()
	return d
}

// complete joins equal shapes and computes the derived fields.
func (d *Demand) complete() {
	sortShapes(d.Shapes)
	joined := d.Shapes[:0]
	for _, shape := range d.Shapes {
		if last := len(joined) - 1; last >= 0 && slices.Equal(joined[last].Each, shape.Each) {
			joined[last].Count += shape.Count
			continue
		}
		joined = append(joined, shape)
	}
	d.Shapes, d.Total, d.bound = joined, nil, Shape{}
	hash := fnv.New64a()
	for _, shape := range d.Shapes {
		number := binary.BigEndian.AppendUint64(nil, uint64(shape.Count))
		for k, each := range shape.Each {
			if each != 0 {
				number = binary.BigEndian.AppendUint64(append(number, byte(k)), uint64(each))
			}
			for len(d.Total) <= k {
				d.Total, d.bound.Each = append(d.Total, 0), append(d.bound.Each, 0)
			}
			d.Total[k] += shape.Count * each
			d.bound.Each[k] = max(d.bound.Each[k], each)
		}
		d.bound.Count += shape.Count
		hash.Write(number) // never fails
	}
	d.hash = hash.Sum64()
}

// ClaimOf is a pod's claim on a quota.
func ClaimOf(spec *corev1.PodSpec) Claim {
	requests := Requests(spec)
	limits := resourcehelper.PodLimits(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
	return Claim{
		ClaimPods:        1,
		ClaimRequestsCPU: requests.Cpu().MilliValue(), ClaimRequestsMemory: requests.Memory().Value(),
		ClaimRequestsStorage: requests.StorageEphemeral().Value(),
		ClaimLimitsCPU:       limits.Cpu().MilliValue(), ClaimLimitsMemory: limits.Memory().Value(),
	}
}

// Requests are a pod's requests, as the scheduler counts them.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	return resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

// QuotasOf are a namespace's quotas by name, without scoped ones, which only the API server evaluates.
func QuotasOf(all []corev1.ResourceQuota) []Quota {
	var quotas []Quota
	for i := range all {
		q := &all[i]
		if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		quota := Quota{Name: q.Name}
		for of := range quota.Hard {
			quota.Hard[of] = Unlimited
			for _, name := range quotaNames[of] {
				if hard, counted := q.Status.Hard[name]; counted && valueOfClaim(of, hard) < quota.Hard[of] {
					quota.Hard[of], quota.Used[of] = valueOfClaim(of, hard), valueOfClaim(of, q.Status.Used[name])
				}
			}
		}
		quotas = append(quotas, quota)
	}
	slices.SortFunc(quotas, func(a, b Quota) int { return cmp.Compare(a.Name, b.Name) })
	return quotas
}

// quotaNames are the equivalent names of each kind in a quota.
var quotaNames = [claimKinds][]corev1.ResourceName{
	ClaimPods:            {corev1.ResourcePods, "count/pods"},
	ClaimRequestsCPU:     {corev1.ResourceRequestsCPU, corev1.ResourceCPU},
	ClaimRequestsMemory:  {corev1.ResourceRequestsMemory, corev1.ResourceMemory},
	ClaimRequestsStorage: {corev1.ResourceRequestsEphemeralStorage, corev1.ResourceEphemeralStorage},
	ClaimLimitsCPU:       {corev1.ResourceLimitsCPU},
	ClaimLimitsMemory:    {corev1.ResourceLimitsMemory},
}

func valueOfClaim(of int, quantity resource.Quantity) int64 {
	if of == ClaimRequestsCPU || of == ClaimLimitsCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// Cluster builds the hosts of a snapshot.
type Cluster struct {
	kinds *ResourceKinds
	Hosts []Host
	index map[string]int
}

// ClusterOf is a cluster of the hosts that take pods, without any pods.
func (s *ResourceKinds) ClusterOf(nodes []corev1.Node) *Cluster {
	c := &Cluster{kinds: s, index: map[string]int{}}
	for i := range nodes {
		node := &nodes[i]
		if !TakesPods(node) {
			continue
		}
		c.index[node.Name] = len(c.Hosts)
		c.Hosts = append(c.Hosts, Host{Name: node.Name, Allocatable: s.allocatable(node.Status.Allocatable), Free: s.allocatable(node.Status.Allocatable)})
	}
	return c
}

// Add adds a pod to its host. Place is for pods without a host.
func (c *Cluster) Add(pod *corev1.Pod) (held Holding, ok bool) {
	at, found := c.index[pod.Spec.NodeName]
	if !found {
		return Holding{}, false
	}
	held = Holding{Host: at, Taken: c.kinds.requested(Requests(&pod.Spec))}
	for k, v := range held.Taken {
		if k < len(c.Hosts[at].Free) {
			c.Hosts[at].Free[k] -= v
		}
	}
	return held, true
}

// Place places pods that have no host yet, as far as there is room.
func (c *Cluster) Place(d *Demand) []Holding {
	free := newTableOf(c.Hosts, c.kinds.Len(), func(h *Host) Amount { return h.Free })
	holds, _, _ := free.place(d)
	for i := range c.Hosts {
		c.Hosts[i].Free = slices.Clone(Amount(free.row(i)))
	}
	return holds
}

// hostLabels are what the labels of hosts must satisfy for nodes of experiments.
func hostLabels() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"windows"}},
		{Key: v1alpha1.LabelTakesExperiments, Operator: corev1.NodeSelectorOpNotIn, Values: []string{v1alpha1.NoExperiments}},
	}
}

// HostAffinity of the nodes of experiments keeps them off hosts that TakesPods leaves out for their labels.
func HostAffinity() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: hostLabels()}},
	}}}
}

// TakesPods reports whether a host runs nodes of experiments: a ready one, not cordoned, without a taint or label against them.
func TakesPods(node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	for _, unwanted := range hostLabels() {
		if slices.Contains(unwanted.Values, node.Labels[unwanted.Key]) {
			return false
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			return false
		}
	}
	return IsReady(node)
}

// IsReady reports whether Kubernetes calls a node ready.
func IsReady(node *corev1.Node) bool {
	ready := ReadyCondition(node)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// ReadyCondition of a node, nil if it has none yet.
func ReadyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
