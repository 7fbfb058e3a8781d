package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Cluster is what is known of a cluster.
type Cluster struct {
	// Server is the API server's address, Unreachable why nothing else is known.
	Server, Unreachable string
	// Namespace of the caller's experiments, and Platform of the platform.
	Namespace, Platform string
	// Program is the version of this program; empty for one without.
	Program string
	// Version of Kubernetes, such as v1.34.1.
	Version string
	// Kinds that the API server serves, such as Workflow.argoproj.io.
	Kinds map[string]bool
	Hosts Fact[[]Host]
	// Definitions of the platform's objects, by their names; without those that the cluster lacks.
	Definitions Fact[map[string]Definition]
	// Parts of the platform by name, such as radiod, and those of others: Multus, Argo's controller.
	Parts Fact[map[string]Part]
	// Template is whether Argo has the workflow of experiments.
	Template Fact[bool]
	// Archive is why the archive's API cannot be used; empty where it can.
	Archive Fact[string]
	Storage Fact[Storage]
	// PodSecurity is the level that the platform's namespace enforces; empty for none.
	PodSecurity Fact[string]
	// Rights of the caller, by the names of Rights.
	Rights Fact[map[string]bool]
	// Clocks are how far the hosts' clocks are from the API server's, within half a second.
	Clocks Fact[map[string]time.Duration]
	// PluginProblems are pods that the container runtime found no plugin for.
	PluginProblems Fact[[]string]
	// Waveforms in the library.
	Waveforms Fact[int]
}

// Host of the cluster.
type Host struct {
	Name, OS, Kernel, Runtime string
	Ready                     bool
}

// Definition of a kind in the cluster.
type Definition struct {
	Established bool
	// Same as that of this program.
	Same bool
}

// Part is a workload.
type Part struct {
	Found         bool
	Ready, Wanted int
	// Outdated are its pods from before the last change.
	Outdated int
	Image    string
	// Version of the chart.
	Version string
	// BinDir is the hosts' folder of CNI plugins that it writes to.
	BinDir string
	// Claim of the volume that it has.
	Claim string
}

// Storage for the archive.
type Storage struct {
	// Name of the archive's claim, and Claim its phase, empty where there is none; Default is the default class.
	Name, Claim, Default string
}

// Names of the parts.
const (
	Operator = "operator"
	Server   = "server"
	Radiod   = "radiod"
	Multus   = "multus"
	Argo     = "workflow-controller"
)

// leastKubernetes is what the rules of the definitions need, leastKernel the oldest kernel that is still maintained for long.
var (
	leastKubernetes = version.MustParseGeneric("1.32")
	leastKernel     = version.MustParseGeneric("5.4")
)

// clockTolerance is more than what is not known of a clock's offset.
const clockTolerance = 1500 * time.Millisecond

const installGuide = "docs/how-to/install.md"

// CheckCluster says what a cluster lacks.
func CheckCluster(c Cluster) Report {
	api := check("API server", true)
	if c.Unreachable != "" {
		return reportOf(c.Server, []Check{api.lacks(c.Unreachable, "start the cluster, or name another by --kubeconfig or --context; this machine alone: vignette doctor --local")})
	}
	checks := []Check{api.fine(c.Server), c.kubernetes(), c.hosts(), c.kernels(), c.multus(), c.plugins(), c.argo(), c.definitions()}
	for _, part := range []string{Operator, Server, Radiod} {
		checks = append(checks, c.part(part))
	}
	checks = append(checks, c.versions(), c.archive(), c.storage(), c.podSecurity(), c.waveforms(), c.clocks())
	checks = append(checks, c.rights()...)
	return reportOf(c.Server, append(checks, c.metrics(), c.monitoring(), c.machines()))
}

func (c Cluster) kubernetes() Check {
	k := check("Kubernetes", true)
	v, err := version.ParseGeneric(c.Version)
	switch {
	case err != nil:
		return k.unread("version " + c.Version)
	case v.LessThan(leastKubernetes):
		return k.lacks(c.Version, fmt.Sprintf("upgrade to %s or newer: the rules of the platform's objects need it", leastKubernetes))
	}
	return k.fine(c.Version)
}

func (c Cluster) hosts() Check {
	k := check("hosts", true)
	if c.Hosts.Unread() {
		return k.unread(c.Hosts.Why)
	}
	ready, down := 0, []string{}
	for _, h := range c.Hosts.Value {
		if h.Ready && h.OS == "linux" {
			ready++
		} else if !h.Ready {
			down = append(down, h.Name)
		}
	}
	found := fmt.Sprintf("%d of %d are Linux and ready", ready, len(c.Hosts.Value))
	switch {
	case ready == 0:
		return k.lacks(found, "nodes of experiments need a Linux host that is ready: kubectl get nodes")
	case len(down) > 0:
		return k.doubtful(found, "not ready: "+some(down)+"; kubectl describe node tells why")
	}
	return k.fine(found)
}

func (c Cluster) kernels() Check {
	k := check("kernels", false)
	if c.Hosts.Unread() {
		return k.unread(c.Hosts.Why)
	}
	versions, old := map[string]bool{}, []string{}
	for _, h := range c.Hosts.Value {
		if h.OS != "linux" {
			continue
		}
		versions[h.Kernel] = true
		if v, err := version.ParseGeneric(h.Kernel); err == nil && v.LessThan(leastKernel) {
			old = append(old, h.Name)
		}
	}
	found := some(slices.Sorted(maps.Keys(versions)))
	if len(old) > 0 {
		return k.lacks(found, fmt.Sprintf("hosts with a kernel before %s: %s; TUN/TAP, nftables and BPF were not tried on it", leastKernel, some(old)))
	}
	return k.fine(found)
}

func (c Cluster) multus() Check {
	k := check("Multus", true)
	if !c.Kinds["NetworkAttachmentDefinition.k8s.cni.cncf.io"] {
		return k.lacks("the cluster has no NetworkAttachmentDefinitions", "install Multus, thin or thick, with namespaceIsolation: "+installGuide)
	}
	return c.running(k, Multus, "NetworkAttachmentDefinitions are served", "kubectl get daemonsets -A; its pods must run on every host")
}

func (c Cluster) argo() Check {
	k := check("Argo Workflows", true)
	for _, kind := range []string{"Workflow", "ClusterWorkflowTemplate"} {
		if !c.Kinds[kind+".argoproj.io"] {
			return k.lacks("the cluster has no "+kind+"s", "install Argo Workflows 3.6 or newer, for all namespaces: "+installGuide)
		}
	}
	if !c.Template.Unread() && !c.Template.Value {
		return k.lacks("the ClusterWorkflowTemplate vignette-experiment is not there", "install or upgrade the chart: "+installGuide)
	}
	return c.running(k, Argo, "Workflows are served", "Argo's workflow-controller must run: kubectl get deployments -A")
}

// running judges a part of others, whose kinds are served.
func (c Cluster) running(k Check, name, served, remedy string) Check {
	part := c.Parts.Value[name]
	switch {
	case c.Parts.Unread(), !part.Found:
		return k.fine(served)
	case part.Ready == 0 && part.Wanted > 0:
		return k.lacks(fmt.Sprintf("0 of %d pods are ready", part.Wanted), remedy)
	case part.Ready < part.Wanted:
		return k.doubtful(fmt.Sprintf("%d of %d pods are ready", part.Ready, part.Wanted), remedy)
	}
	return k.fine(served + inBrackets(tag(part.Image)))
}

// plugins says whether the hosts' runtimes find the CNI plugin that radiod installs.
func (c Cluster) plugins() Check {
	k := check("CNI folder", true)
	radiod, multus := c.Parts.Value[Radiod].BinDir, c.Parts.Value[Multus].BinDir
	switch {
	case len(c.PluginProblems.Value) > 0:
		return k.lacks("the container runtime does not find the plugin radio, as for "+some(c.PluginProblems.Value),
			"set the chart's radiod.cniBinDir to the folder that the hosts' runtime takes plugins from")
	case c.Parts.Unread():
		return k.unread(c.Parts.Why)
	case radiod == "":
		return k.unread("radiod is not installed")
	case multus != "" && multus != radiod:
		return k.doubtful(fmt.Sprintf("radiod writes to %s, Multus to %s", radiod, multus), "set the chart's radiod.cniBinDir to the folder that the hosts' runtime takes plugins from")
	}
	return k.fine(radiod)
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
	const upgrade = "kubectl apply --server-side -f crds/ of the version that is installed"
	switch {
	case len(missing) == len(ownKinds()):
		return k.lacks("the cluster does not know the platform's objects", "install the chart: "+installGuide)
	case len(missing) > 0:
		return k.lacks("not there: "+some(missing), upgrade)
	case len(other) > 0:
		return k.doubtful("of another version than this program: "+some(other), upgrade+", or use the vignette command of that version")
	}
	return k.fine(fmt.Sprintf("all %d", len(ownKinds())))
}

func (c Cluster) part(name string) Check {
	k := check(name, true)
	if c.Parts.Unread() {
		return k.unread(c.Parts.Why)
	}
	part := c.Parts.Value[name]
	look := fmt.Sprintf("kubectl -n %s describe pods -l app.kubernetes.io/name=vignette-%s tells why", c.Platform, name)
	found := fmt.Sprintf("%d of %d ready", part.Ready, part.Wanted)
	switch {
	case !part.Found:
		return k.lacks("not in namespace "+c.Platform, "install the chart, or name its namespace by --platform-namespace: "+installGuide)
	case part.Ready == 0:
		return k.lacks(found, look)
	case part.Ready < part.Wanted:
		return k.doubtful(found, look)
	case part.Outdated > 0:
		return k.doubtful(fmt.Sprintf("%s, %d of an earlier version", found, part.Outdated), fmt.Sprintf("when nothing runs: kubectl -n %s delete pod -l app.kubernetes.io/name=vignette-%s", c.Platform, name))
	}
	return k.fine(found + inBrackets(tag(part.Image)))
}

// versions of the parts, and of this program, must be one.
func (c Cluster) versions() Check {
	k := check("versions", false)
	if c.Parts.Unread() {
		return k.unread(c.Parts.Why)
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
		return k.unread("nothing is installed")
	case len(found) > 1:
		return k.lacks("images of "+strings.Join(found, " and "), "upgrade the chart, so that operator, server and radiod are of one version")
	case c.Program != "" && len(installed) == 1 && installed[0] != "" && installed[0] != c.Program:
		return k.lacks(fmt.Sprintf("the platform is %s, this program %s", installed[0], c.Program), "use the vignette command of the platform's version, or upgrade the chart")
	}
	return k.fine("one: " + found[0])
}

func (c Cluster) archive() Check {
	k := check("archive's API", true)
	switch {
	case c.Archive.Unread():
		return k.unread(c.Archive.Why)
	case c.Archive.Value != "":
		return k.lacks(c.Archive.Value, "the API server must reach the Service vignette-server: kubectl describe apiservice v1alpha1.results.vignette.dev")
	}
	return k.fine("available")
}

func (c Cluster) storage() Check {
	k := check("storage", true)
	s := c.Storage.Value
	switch {
	case c.Storage.Unread():
		return k.unread(c.Storage.Why)
	case s.Claim == "Bound":
		return k.fine("the archive's claim is bound")
	case s.Claim != "":
		return k.lacks("the archive's claim is "+s.Claim, fmt.Sprintf("kubectl -n %s describe pvc %s tells why", c.Platform, s.Name))
	case s.Default == "":
		return k.lacks("no default StorageClass", "name one by the chart's server.storage.storageClassName, or a claim of yours by server.storage.existingClaim")
	}
	return k.fine("default class " + s.Default)
}

func (c Cluster) podSecurity() Check {
	k := check("Pod Security", true)
	switch {
	case c.PodSecurity.Unread():
		return k.unread(c.PodSecurity.Why)
	case c.PodSecurity.Value == "baseline" || c.PodSecurity.Value == "restricted":
		return k.lacks(c.Platform+" enforces "+c.PodSecurity.Value, fmt.Sprintf("radiod is privileged: kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=privileged", c.Platform))
	}
	return k.fine(c.Platform + " lets radiod be privileged")
}

func (c Cluster) waveforms() Check {
	k := check("waveforms", false)
	switch {
	case c.Waveforms.Unread():
		return k.unread(c.Waveforms.Why)
	case c.Waveforms.Value == 0:
		return k.lacks("none", "the chart's waveforms.create: true brings the library")
	}
	return k.fine(fmt.Sprintf("%d", c.Waveforms.Value))
}

func (c Cluster) clocks() Check {
	k := check("clocks", false)
	if c.Clocks.Unread() {
		return k.unread(c.Clocks.Why)
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
		return k.unread("no host has said its time")
	case len(off) > 0:
		return k.lacks("off from the API server's: "+some(off), "synchronise the hosts' clocks (chrony, systemd-timesyncd): delays between hosts are differences of their clocks")
	}
	return k.fine(fmt.Sprintf("of %d hosts, within %s", len(c.Clocks.Value), (worst + 500*time.Millisecond).Round(100*time.Millisecond)))
}

// Right that a caller wants.
type Right struct {
	Name, Group, Resource, Subresource, Verb string
	// For says what it is for.
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
		case c.Rights.Unread():
			k = k.unread(c.Rights.Why)
		case !c.Rights.Value[right.Name]:
			k = k.lacks("not in namespace "+c.Namespace, fmt.Sprintf("for %s: bind the role vignette-experimenter in namespace %s (docs/how-to/share-a-cluster.md)", right.For, c.Namespace))
		default:
			k = k.fine("in namespace " + c.Namespace)
		}
		checks = append(checks, k)
	}
	return checks
}

func (c Cluster) metrics() Check {
	k := check("metrics API", false)
	if !c.Kinds["NodeMetrics.metrics.k8s.io"] {
		return k.lacks("not served", "only for kubectl top: install metrics-server to see what hosts and pods take")
	}
	return k.fine("served")
}

func (c Cluster) monitoring() Check {
	k := check("live results", false)
	switch {
	case c.Parts.Value["prometheus"].Found:
		return k.fine("the platform's own Prometheus")
	case c.Kinds["PodMonitor.monitoring.coreos.com"]:
		return k.fine("by the Prometheus operator")
	case c.Parts.Unread():
		return k.unread(c.Parts.Why)
	}
	return k.lacks("no Prometheus operator, and none of the platform's", "the chart's monitoring.prometheus.enabled: true brings a small Prometheus; results need none")
}

func (c Cluster) machines() Check {
	k := check("virtual machines", false)
	if !c.Kinds["VirtualMachineInstance.kubevirt.io"] {
		return k.fine("no KubeVirt: nodes are pods only")
	}
	return k.fine("by KubeVirt")
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// tag of an image; its digest where it has none.
func tag(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if at := strings.Index(name, "@"); at >= 0 && !strings.Contains(name[:at], ":") {
		return name[at+1:]
	}
	name, _, _ = strings.Cut(name, "@")
	_, found, _ := strings.Cut(name, ":")
	return found
}

// some of many names.
func some(names []string) string {
	const shown = 4
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return strings.Join(names, ", ")
}
