package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Cluster has the facts about a cluster.
type Cluster struct {
	// Server is the API server's address; Unreachable is why nothing else is known.
	Server, Unreachable string
	// Namespace of the caller's experiments, and Platform the platform's namespace.
	Namespace, Platform string
	// Program is this program's version; empty if it has none.
	Program string
	// Version of Kubernetes, such as v1.34.1.
	Version string
	// Kinds that the API server serves, such as Workflow.argoproj.io.
	Kinds map[string]bool
	Hosts Fact[[]Host]
	// Definitions of the platform's objects in the cluster, by name.
	Definitions Fact[map[string]Definition]
	// Parts of the platform by name, such as radiod, and of others: Multus, Argo's controller.
	Parts Fact[map[string]Part]
	// Template reports whether Argo has the workflow of experiments.
	Template Fact[bool]
	// Archive is why the archive's API cannot be used; empty if it can.
	Archive Fact[string]
	Storage Fact[Storage]
	// PodSecurity is the level that the platform's namespace enforces; empty for none.
	PodSecurity Fact[string]
	// Rights of the caller, by the names of Rights.
	Rights Fact[map[string]bool]
	// Clocks are the hosts' offsets from the API server's clock, within half a second.
	Clocks Fact[map[string]time.Duration]
	// PluginProblems are pods for which the container runtime found no plugin.
	PluginProblems Fact[[]string]
	// Waveforms in the library.
	Waveforms Fact[int]
	// Monitored reports whether the chart made PodMonitors.
	Monitored Fact[bool]
	// KubeVirt is what runs virtual machines, where its kinds are served.
	KubeVirt Fact[KubeVirt]
	// PullSecrets are those with which nodes of experiments pull their images.
	PullSecrets Fact[PullSecrets]
}

// PullSecrets of the caller's namespace.
type PullSecrets struct {
	// Account lists those of the account default. Absent are Secrets of the platform's that are not in the namespace.
	Account, Absent []string
}

// KubeVirt of the cluster.
type KubeVirt struct {
	// Phase of its object; empty if there is none.
	Phase string
	// Binding reports whether it knows the binding of the platform's radios.
	Binding bool
}

// Host of the cluster.
type Host struct {
	Name, OS, Kernel string
	// Ready hosts take pods unless they are cordoned or tainted.
	Ready, TakesPods bool
}

// Definition of a kind in the cluster.
type Definition struct {
	Established bool
	// Same as this program's definition.
	Same bool
}

// Part is a workload.
type Part struct {
	Found         bool
	Ready, Wanted int
	// Outdated are its pods of an earlier version.
	Outdated int
	Image    string
	// Version of the chart.
	Version string
	// BinDir is the hosts' folder of CNI plugins to which it writes.
	BinDir string
	// Claim of its volume.
	Claim string
	// PullSecrets with which its pods pull their images.
	PullSecrets []string
}

// Storage for the archive.
type Storage struct {
	// Name of the archive's claim, and Claim its phase, empty if there is none; Default is the default class.
	Name, Claim, Default string
	// Absent is set if the server waits for a claim that does not exist.
	Absent bool
}

// Names of the parts.
const (
	Operator = "operator"
	Server   = "server"
	Radiod   = "radiod"
	Multus   = "multus"
	Argo     = "workflow-controller"
)

// minKubernetes is required by the rules of the definitions; minKernel is the oldest kernel with long-term support.
var (
	minKubernetes = version.MustParseGeneric("1.33")
	minKernel     = version.MustParseGeneric("5.4")
)

// clockTolerance exceeds the uncertainty of a clock's offset.
const clockTolerance = 1500 * time.Millisecond

const (
	installGuide  = "docs/how-to/install.md"
	registryGuide = installGuide + "#a-private-registry"
)

// CheckCluster reports what a cluster lacks.
func CheckCluster(c Cluster) Report {
	api := check("API server", true)
	if c.Unreachable != "" {
		return newReport(c.Server, []Check{api.missing(c.Unreachable, "start the cluster, or choose another one by --kubeconfig or --context; to check only this machine: vignette doctor --local")})
	}
	checks := []Check{api.ok(c.Server), c.kubernetes(), c.hosts(), c.kernels(), c.multus(), c.plugins(), c.argo(), c.definitions()}
	for _, part := range []string{Operator, Server, Radiod} {
		checks = append(checks, c.part(part))
	}
	checks = append(checks, c.versions(), c.archive(), c.storage(), c.podSecurity(), c.pullSecrets(), c.waveforms(), c.clocks())
	checks = append(checks, c.rights()...)
	return newReport(c.Server, append(checks, c.metrics(), c.monitoring(), c.machines()))
}

func (c Cluster) kubernetes() Check {
	k := check("Kubernetes", true)
	v, err := version.ParseGeneric(c.Version)
	switch {
	case err != nil:
		return k.unknown("version " + c.Version)
	case v.LessThan(minKubernetes):
		return k.missing(c.Version, fmt.Sprintf("upgrade to %s or newer: the rules of the platform's objects need it", minKubernetes))
	}
	return k.ok(c.Version)
}

func (c Cluster) hosts() Check {
	k := check("hosts", true)
	if c.Hosts.IsUnknown() {
		return k.unknown(c.Hosts.Why)
	}
	ready, open, down := 0, 0, []string{}
	for _, h := range c.Hosts.Value {
		if h.TakesPods && h.OS == "linux" {
			open++
		}
		if h.Ready && h.OS == "linux" {
			ready++
		} else if !h.Ready {
			down = append(down, h.Name)
		}
	}
	found := fmt.Sprintf("%d of %d are Linux and ready", ready, len(c.Hosts.Value))
	switch {
	case ready == 0:
		return k.missing(found, "nodes of experiments need a Linux host that is ready: kubectl get nodes")
	case open == 0:
		return k.missing(found+", and none takes pods", "experiments find no room where all hosts are cordoned, tainted or kept free of them: "+
			"kubectl uncordon NAME, kubectl taint node NAME KEY-, or kubectl label node NAME "+v1alpha1.LabelTakesExperiments+"-")
	case len(down) > 0:
		return k.warning(found, "not ready: "+listNames(down)+"; kubectl describe node shows why")
	}
	return k.ok(found)
}

func (c Cluster) kernels() Check {
	k := check("kernels", false)
	if c.Hosts.IsUnknown() {
		return k.unknown(c.Hosts.Why)
	}
	versions, old := map[string]bool{}, []string{}
	for _, h := range c.Hosts.Value {
		if h.OS != "linux" {
			continue
		}
		versions[h.Kernel] = true
		if v, err := version.ParseGeneric(h.Kernel); err == nil && v.LessThan(minKernel) {
			old = append(old, h.Name)
		}
	}
	found := listNames(slices.Sorted(maps.Keys(versions)))
	if len(old) > 0 {
		return k.missing(found, fmt.Sprintf("hosts with a kernel before %s: %s; TUN/TAP, nftables and BPF were not tried on it", minKernel, listNames(old)))
	}
	return k.ok(found)
}

func (c Cluster) multus() Check {
	k := check("Multus", true)
	if !c.Kinds["NetworkAttachmentDefinition.k8s.cni.cncf.io"] {
		return k.missing("the cluster has no NetworkAttachmentDefinitions", "install Multus, thin or thick, with namespaceIsolation: "+installGuide)
	}
	return c.partOfOthers(k, Multus, "NetworkAttachmentDefinitions are served", "kubectl get daemonsets -A; its pods must run on every host")
}

func (c Cluster) argo() Check {
	k := check("Argo Workflows", true)
	for _, kind := range []string{"Workflow", "ClusterWorkflowTemplate"} {
		if !c.Kinds[kind+".argoproj.io"] {
			return k.missing("the cluster has no "+kind+"s", "install Argo Workflows 3.6 or newer, for all namespaces: "+installGuide)
		}
	}
	if !c.Template.IsUnknown() && !c.Template.Value {
		return k.missing("there is no ClusterWorkflowTemplate vignette-experiment", "install or upgrade the chart: "+installGuide)
	}
	return c.partOfOthers(k, Argo, "Workflows are served", "Argo's workflow-controller must run: kubectl get deployments -A")
}

// partOfOthers checks a part that the platform does not install and whose kinds are served.
func (c Cluster) partOfOthers(k Check, name, served, remedy string) Check {
	part := c.Parts.Value[name]
	switch {
	case c.Parts.IsUnknown(), !part.Found:
		return k.ok(served)
	case part.Ready == 0 && part.Wanted > 0:
		return k.missing(fmt.Sprintf("0 of %d pods are ready", part.Wanted), remedy)
	case part.Ready < part.Wanted:
		return k.warning(fmt.Sprintf("%d of %d pods are ready", part.Ready, part.Wanted), remedy)
	}
	return k.ok(served + wording.InParentheses(tag(part.Image)))
}

// plugins checks whether the hosts' runtimes find the CNI plugin that radiod installs.
func (c Cluster) plugins() Check {
	k := check("CNI folder", true)
	radiod, multus := c.Parts.Value[Radiod].BinDir, c.Parts.Value[Multus].BinDir
	switch {
	case len(c.PluginProblems.Value) > 0:
		return k.missing("the container runtime does not find the plugin radio, as for "+listNames(c.PluginProblems.Value),
			"set the chart's radiod.cniBinDir to the folder in which the hosts' runtime looks for plugins")
	case c.Parts.IsUnknown():
		return k.unknown(c.Parts.Why)
	case radiod == "":
		return k.unknown("radiod is not installed")
	case multus != "" && multus != radiod:
		return k.warning(fmt.Sprintf("radiod writes to %s, Multus to %s", radiod, multus), "set the chart's radiod.cniBinDir to the folder in which the hosts' runtime looks for plugins")
	}
	return k.ok(radiod)
}

func (c Cluster) definitions() Check {
	k := check("definitions", true)
	var missing, other []string
	for _, kind := range slices.Sorted(maps.Keys(ownKinds())) {
		if !c.Kinds[kind+".vignette.dev"] {
			missing = append(missing, kind)
		}
	}
	for name, d := range c.Definitions.Value {
		if !d.Established || !d.Same {
			other = append(other, name)
		}
	}
	slices.Sort(other)
	const upgrade = "kubectl apply --server-side --force-conflicts -f crds/ of the version that is installed"
	switch {
	case len(missing) == len(ownKinds()):
		return k.missing("the cluster does not know the platform's objects", "install the chart: "+installGuide)
	case len(missing) > 0:
		return k.missing("missing: "+listNames(missing), upgrade)
	case len(other) > 0:
		return k.warning("of another version than this program: "+listNames(other), upgrade+", or use the vignette command of that version")
	}
	return k.ok(fmt.Sprintf("all %d", len(ownKinds())))
}

func (c Cluster) part(name string) Check {
	k := check(name, true)
	if c.Parts.IsUnknown() {
		return k.unknown(c.Parts.Why)
	}
	part := c.Parts.Value[name]
	look := fmt.Sprintf("kubectl -n %s describe pods -l app.kubernetes.io/name=vignette-%s shows why", c.Platform, name)
	found := fmt.Sprintf("%d of %d ready", part.Ready, part.Wanted)
	switch {
	case !part.Found:
		return k.missing("not in namespace "+c.Platform, "install the chart, or give its namespace by --platform-namespace: "+installGuide)
	case part.Ready == 0:
		return k.missing(found, look)
	case part.Ready < part.Wanted:
		return k.warning(found, look)
	case part.Outdated > 0:
		return k.warning(fmt.Sprintf("%s, %d of an earlier version", found, part.Outdated), fmt.Sprintf("when nothing runs: kubectl -n %s delete pod -l app.kubernetes.io/name=vignette-%s", c.Platform, name))
	}
	return k.ok(found + wording.InParentheses(tag(part.Image)))
}

// versions of the parts and of this program must be the same.
func (c Cluster) versions() Check {
	k := check("versions", false)
	if c.Parts.IsUnknown() {
		return k.unknown(c.Parts.Why)
	}
	tags, charts := map[string]bool{}, map[string]bool{}
	for _, name := range []string{Operator, Server, Radiod} {
		if part := c.Parts.Value[name]; part.Found {
			tags[tag(part.Image)] = true
			charts[part.Version] = true
		}
	}
	found := slices.Sorted(maps.Keys(tags))
	installed := slices.Sorted(maps.Keys(charts))
	switch {
	case len(found) == 0:
		return k.unknown("nothing is installed")
	case len(found) > 1:
		return k.missing("images of "+strings.Join(found, " and "), "upgrade the chart, so that operator, server and radiod have the same version")
	case c.Program != "" && len(installed) == 1 && installed[0] != "" && installed[0] != c.Program:
		return k.missing(fmt.Sprintf("the platform is %s, this program %s", installed[0], c.Program), "use the vignette command of the platform's version, or upgrade the chart")
	}
	return k.ok("one: " + found[0])
}

func (c Cluster) archive() Check {
	k := check("archive's API", true)
	switch {
	case c.Archive.IsUnknown():
		return k.unknown(c.Archive.Why)
	case c.Archive.Value != "":
		return k.missing(c.Archive.Value, "the API server must reach the Service vignette-server: kubectl describe apiservice v1alpha1.results.vignette.dev")
	}
	return k.ok("available")
}

func (c Cluster) storage() Check {
	k := check("storage", true)
	s := c.Storage.Value
	switch {
	case c.Storage.IsUnknown():
		return k.unknown(c.Storage.Why)
	case s.Absent:
		remedy := fmt.Sprintf("make it in namespace %s, or correct the chart's server.storage.existingClaim", c.Platform)
		if s.Name == ownClaim {
			remedy = "helm upgrade makes it again, empty"
		}
		return k.missing("there is no claim "+s.Name, remedy)
	case s.Claim == "Bound":
		return k.ok("the archive's claim is bound")
	case s.Claim != "":
		return k.missing("the archive's claim is "+s.Claim, fmt.Sprintf("kubectl -n %s describe pvc %s shows why", c.Platform, s.Name))
	case s.Default == "":
		return k.missing("no default StorageClass", "set the chart's server.storage.storageClassName, or give an existing claim by server.storage.existingClaim")
	}
	return k.ok("default class " + s.Default)
}

func (c Cluster) podSecurity() Check {
	k := check("Pod Security", true)
	switch {
	case c.PodSecurity.IsUnknown():
		return k.unknown(c.PodSecurity.Why)
	case c.PodSecurity.Value == "baseline" || c.PodSecurity.Value == "restricted":
		return k.missing(c.Platform+" enforces "+c.PodSecurity.Value, fmt.Sprintf("radiod is privileged: kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=privileged", c.Platform))
	}
	return k.ok(c.Platform + " allows radiod to be privileged")
}

// pullSecrets checks whether nodes of experiments can pull the platform's images where it needs a Secret itself.
func (c Cluster) pullSecrets() Check {
	k := check("pull secrets", false)
	platform := c.Parts.Value[Operator].PullSecrets
	unnamed := slices.DeleteFunc(slices.Clone(platform), func(name string) bool { return slices.Contains(c.PullSecrets.Value.Account, name) })
	switch {
	case c.Parts.IsUnknown():
		return k.unknown(c.Parts.Why)
	case len(platform) == 0:
		return k.ok("the platform's images need none")
	case c.PullSecrets.IsUnknown():
		return k.unknown(c.PullSecrets.Why)
	case len(c.PullSecrets.Value.Absent) > 0:
		return k.missing(fmt.Sprintf("not in namespace %s: %s", c.Namespace, listNames(c.PullSecrets.Value.Absent)), "create them there: "+registryGuide)
	case len(unnamed) > 0:
		return k.missing(fmt.Sprintf("the account default of namespace %s does not name %s", c.Namespace, listNames(unnamed)), "nodes' pods pull with that account's: "+registryGuide)
	}
	return k.ok(fmt.Sprintf("%s, in namespace %s", listNames(platform), c.Namespace))
}

func (c Cluster) waveforms() Check {
	k := check("waveforms", false)
	switch {
	case c.Waveforms.IsUnknown():
		return k.unknown(c.Waveforms.Why)
	case c.Waveforms.Value == 0:
		return k.missing("none", "set the chart's waveforms.create: true, which installs the library")
	}
	return k.ok(fmt.Sprintf("%d", c.Waveforms.Value))
}

func (c Cluster) clocks() Check {
	k := check("clocks", false)
	if c.Clocks.IsUnknown() {
		return k.unknown(c.Clocks.Why)
	}
	var off []string
	worst := time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(c.Clocks.Value)) {
		offset := c.Clocks.Value[name]
		if worst = max(worst, offset.Abs()); offset.Abs() > clockTolerance {
			off = append(off, fmt.Sprintf("%s by %s", name, offset.Round(100*time.Millisecond)))
		}
	}
	switch {
	case len(c.Clocks.Value) == 0:
		return k.unknown("no host has reported its time")
	case len(off) > 0:
		return k.missing("off from the API server's: "+listNames(off), "synchronise the hosts' clocks (chrony, systemd-timesyncd): delays between hosts are differences of their clocks")
	}
	return k.ok(fmt.Sprintf("of %d hosts, within %s", len(c.Clocks.Value), (worst + 500*time.Millisecond).Round(100*time.Millisecond)))
}

// Right that a caller needs.
type Right struct {
	Name, Group, Resource, Subresource, Verb string
	// For names the commands that need it.
	For    string
	Needed bool
}

// Rights of an experimenter.
var Rights = []Right{
	{"run experiments", "vignette.dev", "experiments", "", "create", "vignette run", true},
	{"read results", "results.vignette.dev", "archives", "proxy", "get", "vignette results, report, logs", true},
	{"change networks", "vignette.dev", "livechanges", "", "create", "vignette set", false},
	{"capture frames", "vignette.dev", "captures", "", "create", "vignette capture", false},
	{"open shells", "", "pods", "exec", "create", "vignette shell", false},
	{"bring the toolbox", "", "pods", "ephemeralcontainers", "patch", "vignette shell --toolbox", false},
}

func (c Cluster) rights() (checks []Check) {
	for _, right := range Rights {
		k := check("right: "+right.Name, right.Needed)
		switch {
		case c.Rights.IsUnknown():
			k = k.unknown(c.Rights.Why)
		case !c.Rights.Value[right.Name]:
			k = k.missing("not in namespace "+c.Namespace, fmt.Sprintf("for %s: bind the role vignette-experimenter in namespace %s (docs/how-to/share-a-cluster.md)", right.For, c.Namespace))
		default:
			k = k.ok("in namespace " + c.Namespace)
		}
		checks = append(checks, k)
	}
	return checks
}

func (c Cluster) metrics() Check {
	k := check("metrics API", false)
	if !c.Kinds["NodeMetrics.metrics.k8s.io"] {
		return k.missing("not served", "only for kubectl top: install metrics-server to see what hosts and pods use")
	}
	return k.ok("served")
}

func (c Cluster) monitoring() Check {
	k := check("live results", false)
	switch {
	case c.Parts.Value["prometheus"].Found:
		return k.ok("the platform's own Prometheus")
	case c.Kinds["PodMonitor.monitoring.coreos.com"] && c.Monitored.IsUnknown():
		return k.unknown(c.Monitored.Why)
	case c.Kinds["PodMonitor.monitoring.coreos.com"] && !c.Monitored.Value:
		return k.missing("the Prometheus operator is there, PodMonitors of the platform are not", "run helm upgrade again, with the chart's monitoring.operator.enabled: true")
	case c.Kinds["PodMonitor.monitoring.coreos.com"]:
		return k.ok("by the Prometheus operator")
	case c.Parts.IsUnknown():
		return k.unknown(c.Parts.Why)
	}
	return k.missing("no Prometheus operator, and none of the platform's", "set the chart's monitoring.prometheus.enabled: true for a small Prometheus; results need none")
}

func (c Cluster) machines() Check {
	k := check("virtual machines", false)
	const guide = installGuide + "#virtual-machines"
	switch found := c.KubeVirt.Value; {
	case !c.Kinds["VirtualMachineInstance.kubevirt.io"]:
		return k.ok("no KubeVirt: nodes are pods only")
	case c.KubeVirt.IsUnknown():
		return k.unknown(c.KubeVirt.Why)
	case found.Phase == "":
		return k.missing("KubeVirt's kinds are there, but no KubeVirt object", "create the object, from which its operator deploys KubeVirt: "+guide)
	case found.Phase != "Deployed":
		return k.missing("KubeVirt is "+found.Phase, "kubectl get pods -A -l kubevirt.io; until it is Deployed no machine starts")
	case !found.Binding:
		return k.missing("KubeVirt has no network binding "+render.RadioBinding, "no machine with a radio starts: add it to the KubeVirt object: "+guide)
	}
	return k.ok("by KubeVirt")
}

// tag of an image; its digest if it has none.
func tag(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if at := strings.Index(name, "@"); at >= 0 && !strings.Contains(name[:at], ":") {
		return name[at+1:]
	}
	name, _, _ = strings.Cut(name, "@")
	_, found, _ := strings.Cut(name, ":")
	return found
}

// listNames of a line.
func listNames(names []string) string { return wording.Some(names, 4) }
