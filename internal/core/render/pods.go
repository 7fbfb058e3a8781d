package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

const (
	nonRoot = int64(65532)
	// tokenSeconds is the lifetime of the projected token, which the kubelet renews at 80 %.
	tokenSeconds = int64(3600)
	// spoolLimit is the size of one container's log directory, which holds unsent logs.
	spoolLimit = "256Mi"
	// binLimit is the size of the folder with the agent.
	binLimit = "256Mi"
	// spoolLimitBytes is the agent's own limit, because above spoolLimit the kubelet would evict the node's pod.
	spoolLimitBytes = 240 << 20
	// environmentLimit is the size of one variable. Linux allows 128 KiB for name and value (MAX_ARG_STRLEN).
	environmentLimit = 128<<10 - 256
)

// Pods are those of all nodes that are pods, in order, each with the scheduling gate.
func Pods(in Input) []*corev1.Pod {
	sites := MakeSites(in)
	pods := make([]*corev1.Pod, 0, len(in.Topology.Nodes))
	for _, node := range in.Topology.Nodes {
		if !node.IsVM() {
			pods = append(pods, pod(in, node, sites[node.Name]))
		}
	}
	return pods
}

func pod(in Input, node topology.Node, sites []apps.Site) *corev1.Pod {
	e := in.Experiment
	p := &corev1.Pod{ObjectMeta: ownedMeta(e, PodName(e.Name, node.Name), labels(e, v1alpha1.LabelNode, node.Name, v1alpha1.LabelGroup, node.Group))}
	p.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	p.Spec = corev1.PodSpec{
		Hostname:                      node.Name,
		ServiceAccountName:            "default", // only the projected token authenticates it
		HostAliases:                   hostAliases(in, node),
		RestartPolicy:                 corev1.RestartPolicyNever,
		Affinity:                      queue.HostAffinity(),
		SchedulingGates:               []corev1.PodSchedulingGate{{Name: v1alpha1.SchedulingGate}},
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(5)),
		SecurityContext:               podSecurity(),
		InitContainers:                []corev1.Container{install(in.Options)},
		Volumes:                       []corev1.Volume{emptyDir("bin", resource.MustParse(binLimit)), TokenVolume()},
	}
	p.Spec.DNSPolicy, p.Spec.DNSConfig = dnsOf(in, node)
	p.Annotations = map[string]string{v1alpha1.AnnotationToolbox: in.Options.ToolboxImage}
	var ports []int
	for _, site := range sites {
		rendering := KindOf(site.App).Render(site)
		p.Spec.Containers = append(p.Spec.Containers, appContainer(in, node, site.App, rendering))
		p.Spec.Volumes = append(p.Spec.Volumes, appVolumes(site.App.Name, in.Options)...)
		addFiles(p, site.App)
		ports = append(ports, rendering.MetricsPorts...)
	}
	if len(sites) == 0 {
		p.Spec.Containers = []corev1.Container{appContainer(in, node, v1alpha1.App{Name: IdleApp}, apps.Rendering{Image: in.Options.AgentImage})}
		p.Spec.Volumes = append(p.Spec.Volumes, appVolumes(IdleApp, in.Options)...)
	}
	p.Spec.Resources = node.Resources.DeepCopy()
	addSecurity(p, e, sites)
	addHosts(p, node)
	maps.Copy(p.Annotations, podAnnotations(e, node, ports))
	return p
}

func podAnnotations(e *v1alpha1.Experiment, node topology.Node, ports []int) map[string]string {
	annotations := stayAnnotations()
	if len(node.Attachments) > 0 {
		annotations[nadv1.NetworkAttachmentAnnot] = selections(e, node)
	}
	maps.Copy(annotations, scrapeAnnotations(ports))
	return annotations
}

// stayAnnotations keep autoscalers from emptying a host of nodes, which would end their run.
func stayAnnotations() map[string]string {
	return map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
}

func scrapeAnnotations(ports []int) map[string]string {
	if len(ports) == 0 {
		return nil
	}
	return map[string]string{"prometheus.io/scrape": "true", "prometheus.io/path": "/metrics", "prometheus.io/port": strconv.Itoa(slices.Min(ports))}
}

// selection is the part of Multus' network selection element that we use.
type selection struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Interface string `json:"interface"`
}

func selections(e *v1alpha1.Experiment, node topology.Node) string {
	elements := make([]selection, len(node.Attachments))
	for i, a := range node.Attachments {
		elements[i] = selection{Name: NetworkName(e.Name, a.Network), Namespace: e.Namespace, Interface: a.Network}
	}
	return encode(elements)
}

// encode encodes plain values as JSON, which never fails.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return string(text)
}

func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(nonRoot), RunAsGroup: ptr.To(nonRoot), FSGroup: ptr.To(nonRoot),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func containerSecurity(user *int64, readOnly bool) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), RunAsUser: user, ReadOnlyRootFilesystem: ptr.To(readOnly),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// smallRequests has no limit of processor time, because throttling would look like radio delay.
func smallRequests() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
	}}
}

// minimalRequests are those of init containers, which must not make a pod too large. A pod requests the maximum of its init
// containers and the sum of its apps.
func minimalRequests() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}}
}

func install(o Options) corev1.Container {
	return corev1.Container{
		Name: installContainer, Image: o.AgentImage, ImagePullPolicy: o.PullPolicy,
		Command:         []string{"/agent", "install", agentconfig.BinDir},
		Resources:       minimalRequests(),
		SecurityContext: containerSecurity(nil, true),
		VolumeMounts:    []corev1.VolumeMount{{Name: "bin", MountPath: agentconfig.BinDir}},
	}
}

func appContainer(in Input, node topology.Node, app v1alpha1.App, r apps.Rendering) corev1.Container {
	c := corev1.Container{
		Name: app.Name, Image: r.Image, ImagePullPolicy: in.Options.PullPolicy,
		Command:         []string{agentconfig.BinDir + "/agent", "run"},
		Env:             environment(r.Env, node, agentConfig(in, node, app, r)),
		Resources:       resourcesOf(in.Options, node, app),
		SecurityContext: containerSecurity(app.RunAsUser, !app.Own()),
		VolumeMounts:    append(appMounts(app.Name), fileMounts(app)...),
	}
	for i, port := range r.MetricsPorts {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: fmt.Sprintf("metrics-%d", i+1), ContainerPort: int32(port)})
	}
	return c
}

// environment has the platform's own variables last, because the last of two with the same name counts.
func environment(user []v1alpha1.EnvVar, node topology.Node, config agentconfig.Config) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, variable := range user {
		env = append(env, environmentVariable(variable))
	}
	return append(env, corev1.EnvVar{Name: agentconfig.Env, Value: escape(encode(config))}, corev1.EnvVar{Name: "VIGNETTE_NODE", Value: node.Name})
}

func environmentVariable(v v1alpha1.EnvVar) corev1.EnvVar {
	switch {
	case v.ConfigMap != nil:
		return corev1.EnvVar{Name: v.Name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.ConfigMap.Name}, Key: v.ConfigMap.Key}}}
	case v.Secret != nil:
		return corev1.EnvVar{Name: v.Name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.Name}, Key: v.Secret.Key}}}
	default:
		return corev1.EnvVar{Name: v.Name, Value: escape(ptr.Deref(v.Value, ""))}
	}
}

func appMounts(app string) []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: "bin", MountPath: agentconfig.BinDir, ReadOnly: true},
		{Name: "token", MountPath: "/vignette/token", ReadOnly: true},
		{Name: "run-" + app, MountPath: agentconfig.RunDir},
		{Name: "log-" + app, MountPath: agentconfig.LogDir},
		{Name: "tmp-" + app, MountPath: "/tmp"},
	}
}

// instanceMemory is added to the default limit for each further instance of an app, as each is a process.
const instanceMemory = 64 << 20

// resourcesOf an app's container.
func resourcesOf(o Options, node topology.Node, app v1alpha1.App) corev1.ResourceRequirements {
	resources := smallRequests()
	if app.Resources != nil {
		resources = *app.Resources.DeepCopy()
	}
	limitMemory(&resources, o, app)
	limitToNode(&resources, node, app)
	return resources
}

// memoryLimit is what an app on a node may use, in bytes; 0 for no limit.
func memoryLimit(in Input, node topology.Node, app v1alpha1.App) int64 {
	var smallest int64
	limits := []corev1.ResourceList{resourcesOf(in.Options, node, app).Limits}
	if node.IsVM() { // the default is for containers
		limits = []corev1.ResourceList{resourcesOf(Options{}, node, app).Limits, {corev1.ResourceMemory: settingsOf(in, node).Memory.Quantity()}}
	} else if node.Resources != nil {
		limits = append(limits, node.Resources.Limits)
	}
	for _, list := range limits {
		if limit := list.Memory().Value(); limit > 0 && (smallest == 0 || limit < smallest) {
			smallest = limit
		}
	}
	return smallest
}

// limitMemory sets the limit of a container without one, so that one app cannot use all of a host's memory. A larger request
// is the limit.
func limitMemory(resources *corev1.ResourceRequirements, o Options, app v1alpha1.App) {
	if _, limited := resources.Limits[corev1.ResourceMemory]; limited || o.MemoryLimit.IsZero() {
		return
	}
	request, requested := resources.Requests[corev1.ResourceMemory]
	if !requested { // Kubernetes would use the limit as the request
		request = smallRequests().Requests[corev1.ResourceMemory]
		setMemory(&resources.Requests, request)
	}
	limit := o.MemoryLimit.DeepCopy()
	limit.Add(*resource.NewQuantity(instanceMemory*int64(max(app.Instances, 1)-1), resource.BinarySI))
	if request.Cmp(limit) > 0 {
		limit = request
	}
	setMemory(&resources.Limits, limit)
}

func setMemory(list *corev1.ResourceList, memory resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[corev1.ResourceMemory] = memory
}

func appVolumes(app string, o Options) []corev1.Volume {
	return []corev1.Volume{
		emptyDir("run-"+app, o.ScratchLimit), emptyDir("log-"+app, resource.MustParse(spoolLimit)), emptyDir("tmp-"+app, o.ScratchLimit),
	}
}

// emptyDir is a folder with a limit, above which the kubelet evicts the pod. Zero is no limit.
func emptyDir(name string, limit resource.Quantity) corev1.Volume {
	source := &corev1.EmptyDirVolumeSource{}
	if !limit.IsZero() {
		source.SizeLimit = &limit
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}}
}

// TokenVolume projects a pod's token for the server. The default audience would be the API server.
func TokenVolume() corev1.Volume {
	return corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: v1alpha1.TokenAudience, ExpirationSeconds: ptr.To(tokenSeconds), Path: "token",
		}}},
	}}}
}

// escape keeps the kubelet from expanding $(NAME) in a value.
func escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }
