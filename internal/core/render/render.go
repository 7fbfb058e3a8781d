// Package render renders every object of an experiment. It is pure: the same experiment and options always give the same
// bytes, which golden files check.
package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/crdrules"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// The operator's default of Options.MemoryLimit, and its flag for it.
const (
	DefaultMemoryLimit = "2Gi"
	MemoryLimitFlag    = "app-memory-limit"
)

// Options are the platform's settings for rendering.
type Options struct {
	// Namespace of the platform, which has the RadioNetworks.
	Namespace string
	// ServerURL is the server's address for nodes and the workflow's pods.
	ServerURL string
	// AgentImage, ServerImage and AnalysisImage of the platform.
	AgentImage, ServerImage, AnalysisImage string
	// Apps has the images of the platform's own apps.
	Apps apps.Images
	// GuestImage is the container disk of virtual machines without a disk of their own. GuestToolsImage is the one with the
	// platform's programs for all guests. They may be empty.
	GuestImage, GuestToolsImage string
	// EMANEImage is the image of the engine emane, empty if EMANE is not installed.
	EMANEImage string
	// EMANEAnnotations are those of its pods.
	EMANEAnnotations map[string]string
	// MemoryLimit is for app containers without a limit, ScratchLimit for each of their folders for data and /tmp. Zero is no
	// limit.
	MemoryLimit, ScratchLimit resource.Quantity
	// ToolboxImage has tools for networks, for shells on nodes.
	ToolboxImage string
	// PullPolicy of the platform's images.
	PullPolicy corev1.PullPolicy
	// PullSecrets are for EMANE's pods and the workflow's. Node pods have none, as they would lose those of their account.
	PullSecrets []corev1.LocalObjectReference
	// ClusterDNS lets isolated nodes ask the cluster's DNS.
	ClusterDNS bool
}

// Names of objects that all experiments share.
const (
	// WorkflowServiceAccount runs the workflow's pods; the ClusterRole bound to it has the same name.
	WorkflowServiceAccount = "vignette-workflow"
	// WorkflowTemplate is the ClusterWorkflowTemplate in workflows/.
	WorkflowTemplate = "vignette-experiment"
	// IdleApp is the agent's app name on nodes without apps.
	IdleApp = "idle"
	// installContainer is the init container's name, which no app may have.
	installContainer = "agent"
	managedBy        = "app.kubernetes.io/managed-by"
	// ManagedByValue marks shared objects that the operator has created and may delete.
	ManagedByValue = "vignette"
)

// Input is what objects are rendered from.
type Input struct {
	Experiment *v1alpha1.Experiment
	Topology   *topology.Topology
	Options    Options
	// Waveforms by network, as far as they are known. Those in place may be missing.
	Waveforms map[string]v1alpha1.WaveformSpec
	// ServerAddress is the address of the name in Options.ServerURL, once known, for isolated nodes without a nameserver.
	ServerAddress string
	// Scenario that moves the nodes, or nil.
	Scenario *Scenario
	// Scripts are the contents of scripts in ConfigMaps, as far as they are known.
	Scripts map[v1alpha1.KeyReference]string
	// FileBytes are the sizes of files in ConfigMaps, as far as they are known.
	FileBytes map[v1alpha1.KeyReference]int
	// Templates of virtual machines by name, as far as they are known.
	Templates map[string]v1alpha1.VirtualMachine
	// Contents of files in ConfigMaps, only for virtual machines, because the kubelet cannot mount them there.
	Contents map[v1alpha1.KeyReference][]byte
	// ClientSecurity is the Secret for virtual machines that have only clients of brokers with security, if any.
	ClientSecurity string
}

// Check finds what of an experiment cannot be rendered although the topology is valid.
func Check(spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	errs = checkFormats(spec)
	for i, app := range spec.Apps {
		if app.Name == installContainer || app.Name == IdleApp {
			errs = append(errs, field.Invalid(field.NewPath("spec", "apps").Index(i).Child("name"), app.Name, "is a name that the platform uses itself"))
		}
		if KindOf(app) == nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "apps").Index(i), app.Name, "needs one of mosquitto, publisher, subscriber, mgen, script, or image with command"))
		}
		if app.Own() && app.Command[0] == "" {
			errs = append(errs, field.Invalid(field.NewPath("spec", "apps").Index(i).Child("command").Index(0), "", "must be the program to start, such as /app/run"))
		}
		errs = append(errs, checkImage(app.Image, field.NewPath("spec", "apps").Index(i).Child("image"))...)
		errs = append(errs, checkFiles(app, field.NewPath("spec", "apps").Index(i))...)
		errs = append(errs, checkResources(app.Resources, field.NewPath("spec", "apps").Index(i).Child("resources"))...)
	}
	for i, node := range spec.Nodes {
		errs = append(errs, checkNodeResources(node, field.NewPath("spec", "nodes").Index(i).Child("resources"))...)
	}
	return errs
}

// imageForm matches names of images as the kubelet takes them (OCI Distribution's reference grammar).
var imageForm = regexp.MustCompile(`^(([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]+)?/)?` + imagePart + `(/` + imagePart + `)*(:\w[\w.-]{0,127})?(@[A-Za-z][A-Za-z0-9+._-]*:[0-9A-Fa-f]{32,})?$`)

// imagePart is what is between the slashes of an image's name.
const imagePart = `[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*`

func checkImage(image string, path *field.Path) field.ErrorList {
	if image == "" || imageForm.MatchString(image) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, image, "is no name that hosts can pull: want lower-case letters, digits, dots, hyphens and underscores "+
		"behind the registry, then a tag or digest, such as registry.example/lab/tracker:1.4")}
}

// checkFormats of all strings, which the API server lets pass where the chart's policy is not installed.
func checkFormats(spec *v1alpha1.ExperimentSpec) field.ErrorList {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	return crdrules.CheckFormats(map[string]any{"spec": fields})
}

// checkResources refuses what no pod may have, of which Kubernetes would tell only when the pod is made.
func checkResources(r *corev1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	for _, part := range partsOf(r) {
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			q := part.list[name]
			if message := wrongAmount(name, q); message != "" {
				errs = append(errs, field.Invalid(path.Child(part.key, string(name)), q.String(), message))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		at := path.Child("requests", string(name))
		switch {
		case isIndivisible(name) && !limited:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("has no limit: write limits: {%s: %s}, which is the request too", name, request.String())))
		case isIndivisible(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must be equal to the limit, %s", limit.String())))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("is above the limit, %s", limit.String())))
		}
	}
	if len(r.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("claims"), "the platform's pods have no claims to name: leave them out"))
	}
	return errs
}

// isIndivisible reports whether Kubernetes gives a resource, such as a graphics card, only as a whole and to one container.
func isIndivisible(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}

// resourcePart is what is requested, or the limits.
type resourcePart struct {
	key  string
	list corev1.ResourceList
}

func partsOf(r *corev1.ResourceRequirements) []resourcePart {
	return []resourcePart{{"requests", r.Requests}, {"limits", r.Limits}}
}

// wrongAmount returns the error in an amount of a resource; empty for none.
func wrongAmount(name corev1.ResourceName, q resource.Quantity) string {
	switch {
	case q.Sign() < 0:
		return "must not be negative"
	case (name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage) && q.Cmp(*resource.NewQuantity(q.Value(), q.Format)) != 0: // Value is rounded
		return "must be whole bytes, such as 512Mi: m is a thousandth"
	case name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage &&
		!strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && !strings.Contains(string(name), "/"):
		return "no pod has such a resource: want cpu, memory, ephemeral-storage, or one with its domain, such as nvidia.com/gpu"
	case len(validation.IsQualifiedName(string(name))) > 0:
		return "no resource has such a name: want one such as nvidia.com/gpu"
	case isIndivisible(name) && q.MilliValue()%1000 != 0:
		return "must be a whole number: such a resource has no parts"
	}
	return ""
}

// CheckSize finds apps with more instances than fit the agent's configuration, or more files than fit a pod.
func CheckSize(pods []*corev1.Pod, spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	for i, app := range spec.Apps {
		if size := largestVariable(pods, app.Name); size > environmentLimit {
			errs = append(errs, tooLarge(app, size, field.NewPath("spec", "apps").Index(i)))
		}
	}
	return append(errs, checkAnnotations(pods)...)
}

// tooLarge is the error of an app whose part of the agent's configuration is too large: by its script, or by its instances.
func tooLarge(app v1alpha1.App, size int, path *field.Path) *field.Error {
	reason := fmt.Sprintf("the agent's configuration has %d bytes and at most %d fit: ", size, environmentLimit)
	const fewer = "give one node fewer messages or shorter texts, or split the script over several apps"
	messages, reference := scriptedMessages(app)
	switch {
	case reference != nil:
		_, at := scriptReference(app, path)
		return field.Invalid(at.Child("configMap"), reference.Key, reason+fewer)
	case len(messages) > 0:
		return field.Invalid(messagesPath(app, path).Child("messages"), fmt.Sprintf("%d messages", len(messages)), reason+fewer)
	}
	return field.Invalid(path.Child("instances"), app.Instances, reason+"spread the instances over more nodes or apps")
}

func largestVariable(pods []*corev1.Pod, container string) (size int) {
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			for _, variable := range c.Env {
				if c.Name == container {
					size = max(size, len(variable.Value))
				}
			}
		}
	}
	return size
}

// PodName is the name of a node's pod.
func PodName(experiment, node string) string { return experiment + "-" + node }

// NetworkName is the name of a network's NetworkAttachmentDefinition.
func NetworkName(experiment, network string) string { return experiment + "-" + network }

// RadioNetworkName is the name of a network's RadioNetwork. In the platform's namespace names of experiments may clash, but
// UIDs do not.
func RadioNetworkName(e *v1alpha1.Experiment, network string) string {
	return fmt.Sprintf("%s-%s", e.UID, network)
}

// Owner is the owner reference of everything in the experiment's namespace.
func Owner(e *v1alpha1.Experiment) metav1.OwnerReference {
	return *metav1.NewControllerRef(e, v1alpha1.GroupVersion.WithKind("Experiment"))
}

func labels(e *v1alpha1.Experiment, more ...string) map[string]string {
	l := map[string]string{
		managedBy:                   ManagedByValue,
		v1alpha1.LabelExperiment:    e.Name,
		v1alpha1.LabelExperimentUID: string(e.UID),
	}
	for i := 0; i+1 < len(more); i += 2 {
		l[more[i]] = more[i+1]
	}
	return l
}

func ownedMeta(e *v1alpha1.Experiment, name string, l map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: e.Namespace, Labels: l,
		OwnerReferences: []metav1.OwnerReference{Owner(e)},
	}
}
