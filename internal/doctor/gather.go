package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
)

// ownDefinitions are this program's, by name.
var ownDefinitions = sync.OnceValue(func() map[string]*apiextensionsv1.CustomResourceDefinition {
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	all, err := crds.Definitions()
	if err != nil {
		panic(fmt.Sprintf("embedded definitions: %v", err)) // a test reads all of them
	}
	for _, definition := range all {
		found[definition.Name] = definition
	}
	return found
})

// ownKinds are the platform's.
func ownKinds() map[string]bool {
	kinds := map[string]bool{}
	for _, d := range ownDefinitions() {
		kinds[d.Spec.Names.Kind] = true
	}
	return kinds
}

// gatherer reads facts with the caller's rights.
type gatherer struct {
	kube                client.Client
	namespace, platform string
}

// requestTimeout for an API server that does not answer.
const requestTimeout = 10 * time.Second

// Gather the facts about a cluster. Objects that the caller may not read are unknown.
func Gather(ctx context.Context, config *rest.Config, namespace, platform, program string) Cluster {
	c := Cluster{Server: config.Host, Namespace: namespace, Platform: platform, Program: program}
	asked := rest.CopyConfig(config)
	asked.Timeout = requestTimeout
	if err := c.discover(asked); err != nil {
		c.Unreachable = err.Error()
		return c
	}
	g, err := newGatherer(asked, namespace, platform)
	if err != nil {
		c.Unreachable = err.Error()
		return c
	}
	c.Hosts, c.Definitions, c.Parts = g.hosts(ctx), g.definitions(ctx), g.parts(ctx)
	c.Template, c.Archive = g.template(ctx), g.archive(ctx)
	c.Storage = g.storage(ctx, c.Parts.Value[Server].Claim)
	c.PodSecurity, c.Rights, c.Clocks = g.podSecurity(ctx), g.rights(ctx), g.clocks(ctx)
	c.PluginProblems, c.Waveforms, c.Monitored = g.pluginProblems(ctx), g.waveforms(ctx), g.monitored(ctx)
	c.KubeVirt = g.kubeVirt(ctx)
	c.PullSecrets = g.pullSecrets(ctx, c.Parts.Value[Operator].PullSecrets)
	return c
}

func newGatherer(config *rest.Config, namespace, platform string) (*gatherer, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme, coordinationv1.AddToScheme, authorizationv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	return &gatherer{kube, namespace, platform}, err
}

// checkedGroups have the kinds that the checks need.
var checkedGroups = []string{"vignette.dev", "k8s.cni.cncf.io", "argoproj.io", "metrics.k8s.io", "monitoring.coreos.com", "kubevirt.io"}

// discover the version and the kinds of a cluster.
func (c *Cluster) discover(config *rest.Config) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	v, err := d.ServerVersion()
	if err != nil {
		return err
	}
	c.Version, c.Kinds = v.GitVersion, map[string]bool{}
	groups, err := d.ServerGroups()
	if err != nil {
		return err
	}
	for _, group := range groups.Groups {
		if !slices.Contains(checkedGroups, group.Name) {
			continue
		}
		for _, served := range group.Versions {
			resources, err := d.ServerResourcesForGroupVersion(served.GroupVersion)
			if err != nil {
				continue // the server of this API does not answer
			}
			for _, resource := range resources.APIResources {
				c.Kinds[resource.Kind+"."+group.Name] = true
			}
		}
	}
	return nil
}

// reasonOf an error that makes a fact unknown.
func reasonOf(err error) string {
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return "you may not read it"
	case meta.IsNoMatchError(err):
		return "the cluster does not serve it"
	}
	return err.Error()
}

func (g *gatherer) hosts(ctx context.Context) Fact[[]Host] {
	var list corev1.NodeList
	if err := g.kube.List(ctx, &list); err != nil {
		return unknown[[]Host](reasonOf(err))
	}
	hosts := []Host{}
	for _, node := range list.Items {
		info := node.Status.NodeInfo
		hosts = append(hosts, Host{node.Name, info.OperatingSystem, info.KernelVersion, queue.IsReady(&node), queue.TakesPods(&node)})
	}
	return known(hosts)
}

func (g *gatherer) definitions(ctx context.Context) Fact[map[string]Definition] {
	found := map[string]Definition{}
	for name, own := range ownDefinitions() {
		there := &apiextensionsv1.CustomResourceDefinition{}
		err := g.kube.Get(ctx, client.ObjectKey{Name: name}, there)
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return unknown[map[string]Definition](reasonOf(err))
		}
		established := slices.ContainsFunc(there.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		})
		found[name] = Definition{established, equality.Semantic.DeepEqual(own.Spec.Versions, there.Spec.Versions)}
	}
	return known(found)
}

// parts of the platform and of others, in any namespace.
func (g *gatherer) parts(ctx context.Context) Fact[map[string]Part] {
	var deployments appsv1.DeploymentList
	var daemons appsv1.DaemonSetList
	within := []client.ListOption{}
	err := g.kube.List(ctx, &deployments)
	if apierrors.IsForbidden(err) {
		within = append(within, client.InNamespace(g.platform))
		err = g.kube.List(ctx, &deployments, within...)
	}
	if err == nil {
		err = g.kube.List(ctx, &daemons, within...)
	}
	if err != nil {
		return unknown[map[string]Part](reasonOf(err))
	}
	parts, names := map[string]Part{}, map[string]string{}
	add := func(workload client.Object, part Part) {
		name := g.partOf(workload)
		// What goes with a part has a longer name, such as multus-additional-cni-plugins beside multus.
		if before := names[name]; name != "" && (before == "" || len(workload.GetName()) < len(before)) {
			parts[name], names[name] = part, workload.GetName()
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		part := partFrom(d, &d.Spec.Template)
		part.Ready, part.Wanted = int(d.Status.ReadyReplicas), int(ptr.Deref(d.Spec.Replicas, 1))
		add(d, part)
	}
	for i := range daemons.Items {
		d := &daemons.Items[i]
		part := partFrom(d, &d.Spec.Template)
		part.Ready, part.Wanted = int(d.Status.NumberReady), int(d.Status.DesiredNumberScheduled)
		part.Outdated = part.Wanted - int(d.Status.UpdatedNumberScheduled)
		add(d, part)
	}
	return known(parts)
}

// partOf returns the part that a workload is; empty for none.
func (g *gatherer) partOf(workload client.Object) string {
	name := workload.GetName()
	own, isOwn := strings.CutPrefix(name, "vignette-")
	_, isDaemon := workload.(*appsv1.DaemonSet)
	switch {
	case isOwn && workload.GetNamespace() == g.platform:
		return own
	case strings.Contains(name, "multus") && isDaemon: // webhooks beside it are Deployments
		return Multus
	case strings.HasSuffix(name, "workflow-controller"):
		return Argo
	}
	return ""
}

func partFrom(workload client.Object, template *corev1.PodTemplateSpec) Part {
	part := Part{Found: true, Version: workload.GetLabels()["app.kubernetes.io/version"]}
	if len(template.Spec.Containers) > 0 {
		part.Image = template.Spec.Containers[0].Image
	}
	part.PullSecrets = namesOf(template.Spec.ImagePullSecrets)
	for _, volume := range template.Spec.Volumes {
		if volume.HostPath != nil && slices.Contains([]string{"cni-bin", "cnibin"}, volume.Name) {
			part.BinDir = volume.HostPath.Path
		}
		if volume.PersistentVolumeClaim != nil {
			part.Claim = volume.PersistentVolumeClaim.ClaimName
		}
	}
	return part
}

func namesOf(references []corev1.LocalObjectReference) (names []string) {
	for _, r := range references {
		names = append(names, r.Name)
	}
	return names
}

// pullSecrets of the caller's namespace, where the platform has those of these names. A Secret that the caller may not read
// may be there.
func (g *gatherer) pullSecrets(ctx context.Context, platform []string) Fact[PullSecrets] {
	account := &corev1.ServiceAccount{}
	if err := g.kube.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: "default"}, account); err != nil {
		return unknown[PullSecrets](reasonOf(err))
	}
	found := PullSecrets{Account: namesOf(account.ImagePullSecrets)}
	for _, name := range platform {
		if apierrors.IsNotFound(g.kube.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: name}, &corev1.Secret{})) {
			found.Absent = append(found.Absent, name)
		}
	}
	return known(found)
}

// get an object whose kind has no Go type here.
func (g *gatherer) get(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, g.kube.Get(ctx, client.ObjectKey{Name: name}, object)
}

func (g *gatherer) template(ctx context.Context) Fact[bool] {
	_, err := g.get(ctx, schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "ClusterWorkflowTemplate"}, "vignette-experiment")
	if err != nil && !apierrors.IsNotFound(err) {
		return unknown[bool](reasonOf(err))
	}
	return known(err == nil)
}

func (g *gatherer) archive(ctx context.Context) Fact[string] {
	service, err := g.get(ctx, schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "v1alpha1.results.vignette.dev")
	if apierrors.IsNotFound(err) {
		return known("there is no APIService v1alpha1.results.vignette.dev")
	}
	if err != nil {
		return unknown[string](reasonOf(err))
	}
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions") // none: not available
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return known("")
		}
		return known(fmt.Sprint("not available: ", condition["message"]))
	}
	return known("not available yet")
}

// ownClaim is the archive's claim if the chart makes it.
const ownClaim = "vignette-archive"

// storage for the archive; mounted is the claim of the server, empty if there is no server.
func (g *gatherer) storage(ctx context.Context, mounted string) Fact[Storage] {
	s := Storage{Name: cmp.Or(mounted, ownClaim)}
	claim := &corev1.PersistentVolumeClaim{}
	claimErr := g.kube.Get(ctx, client.ObjectKey{Namespace: g.platform, Name: s.Name}, claim)
	switch {
	case claimErr == nil:
		s.Claim = string(claim.Status.Phase)
	case mounted != "" && apierrors.IsNotFound(claimErr):
		s.Absent = true
		return known(s)
	}
	var classes storagev1.StorageClassList
	if err := g.kube.List(ctx, &classes); err != nil && s.Claim == "" {
		return unknown[Storage](reasonOf(err))
	}
	for _, class := range classes.Items {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			s.Default = class.Name
		}
	}
	if s.Claim == "" && s.Default == "" && apierrors.IsForbidden(claimErr) {
		return unknown[Storage](reasonOf(claimErr)) // there may be a claim
	}
	return known(s)
}

func (g *gatherer) podSecurity(ctx context.Context) Fact[string] {
	namespace := &corev1.Namespace{}
	err := g.kube.Get(ctx, client.ObjectKey{Name: g.platform}, namespace)
	if apierrors.IsNotFound(err) {
		return unknown[string]("there is no namespace " + g.platform)
	}
	if err != nil {
		return unknown[string](reasonOf(err))
	}
	return known(namespace.Labels["pod-security.kubernetes.io/enforce"])
}

func (g *gatherer) rights(ctx context.Context) Fact[map[string]bool] {
	found := map[string]bool{}
	for _, right := range Rights {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: g.namespace, Verb: right.Verb, Group: right.Group, Resource: right.Resource, Subresource: right.Subresource,
			},
		}}
		if err := g.kube.Create(ctx, review); err != nil {
			return unknown[map[string]bool](reasonOf(err))
		}
		found[right.Name] = review.Status.Allowed
	}
	return known(found)
}

// clocks from the hosts' leases: each has the host's time and the API server's time of the same write, in whole seconds.
func (g *gatherer) clocks(ctx context.Context) Fact[map[string]time.Duration] {
	var leases coordinationv1.LeaseList
	if err := g.kube.List(ctx, &leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return unknown[map[string]time.Duration](reasonOf(err))
	}
	offsets := map[string]time.Duration{}
	for i := range leases.Items {
		lease := &leases.Items[i]
		written := latest(lease.ManagedFields)
		if lease.Spec.RenewTime == nil || written.IsZero() {
			continue
		}
		offsets[lease.Name] = lease.Spec.RenewTime.Sub(written.Add(500 * time.Millisecond))
	}
	return known(offsets)
}

func latest(fields []metav1.ManagedFieldsEntry) (at time.Time) {
	for _, entry := range fields {
		if entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// pluginProblems are pods for which no plugin radio was found since their host's radiod, which installs it, became ready.
func (g *gatherer) pluginProblems(ctx context.Context) Fact[[]string] {
	var events corev1.EventList
	if err := g.kube.List(ctx, &events, client.MatchingFields{"reason": "FailedCreatePodSandBox"}); err != nil {
		return unknown[[]string](reasonOf(err))
	}
	ready, err := g.radiodsReady(ctx)
	if err != nil {
		return unknown[[]string](reasonOf(err))
	}
	pods := []string{}
	for i := range events.Items {
		event := &events.Items[i]
		pod := event.InvolvedObject.Namespace + "/" + event.InvolvedObject.Name
		if strings.Contains(event.Message, `failed to find plugin "radio"`) && !lastSeen(event).Before(ready[event.Source.Host]) && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	return known(pods)
}

// radiodsReady is since when each host's radiod is ready.
func (g *gatherer) radiodsReady(ctx context.Context) (map[string]time.Time, error) {
	var pods corev1.PodList
	err := g.kube.List(ctx, &pods, client.InNamespace(g.platform), client.MatchingLabels{"app.kubernetes.io/name": "vignette-" + Radiod})
	since := map[string]time.Time{}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				since[pods.Items[i].Spec.NodeName] = c.LastTransitionTime.Time
			}
		}
	}
	return since, err
}

func lastSeen(event *corev1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	if event.LastTimestamp.IsZero() {
		return event.EventTime.Time
	}
	return event.LastTimestamp.Time
}

// monitored reports whether the Prometheus operator knows the platform.
func (g *gatherer) monitored(ctx context.Context) Fact[bool] {
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"})
	err := g.kube.Get(ctx, client.ObjectKey{Namespace: g.platform, Name: "vignette-" + Radiod}, monitor)
	if err != nil && !apierrors.IsNotFound(err) {
		return unknown[bool](reasonOf(err))
	}
	return known(err == nil)
}

func (g *gatherer) kubeVirt(ctx context.Context) Fact[KubeVirt] {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "KubeVirtList"})
	if err := g.kube.List(ctx, list); err != nil {
		return unknown[KubeVirt](reasonOf(err))
	}
	found := KubeVirt{}
	for _, object := range list.Items { // a cluster has at most one
		found.Phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
		found.Phase = cmp.Or(found.Phase, "not deployed yet")
		_, found.Binding, _ = unstructured.NestedMap(object.Object, "spec", "configuration", "network", "binding", render.RadioBinding)
	}
	return known(found)
}

func (g *gatherer) waveforms(ctx context.Context) Fact[int] {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "vignette.dev", Version: "v1alpha1", Kind: "WaveformList"})
	if err := g.kube.List(ctx, list); err != nil {
		return unknown[int](reasonOf(err))
	}
	return known(len(list.Items))
}
