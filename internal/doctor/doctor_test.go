package doctor

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sound is a cluster that has everything.
func sound() Cluster {
	c := Cluster{
		Server: "https://192.0.2.1:6443", Namespace: "team-nor", Platform: "vignette-system", Program: "0.1.0", Version: "v1.34.1",
		Kinds: map[string]bool{"NetworkAttachmentDefinition.k8s.cni.cncf.io": true, "Workflow.argoproj.io": true, "ClusterWorkflowTemplate.argoproj.io": true,
			"NodeMetrics.metrics.k8s.io": true, "PodMonitor.monitoring.coreos.com": true, "VirtualMachineInstance.kubevirt.io": true},
		Hosts:       known([]Host{{"h1", "linux", "6.1.0-18-amd64", true, true}, {"h2", "linux", "6.1.0-18-amd64", true, true}}),
		Definitions: known(map[string]Definition{}),
		Parts: known(map[string]Part{
			Operator: {Found: true, Ready: 1, Wanted: 1, Image: "r/operator:1", Version: "0.1.0", PullSecrets: []string{"registry"}},
			Server:   {Found: true, Ready: 1, Wanted: 1, Image: "r/server:1", Version: "0.1.0"},
			Radiod:   {Found: true, Ready: 2, Wanted: 2, Image: "r/radiod:1", Version: "0.1.0", BinDir: "/opt/cni/bin"},
			Multus:   {Found: true, Ready: 2, Wanted: 2, Image: "multus:v4", BinDir: "/opt/cni/bin"},
			Argo:     {Found: true, Ready: 1, Wanted: 1, Image: "argo:v3"},
		}),
		Template: known(true), Archive: known(""), Storage: known(Storage{Claim: "Bound"}), PodSecurity: known("privileged"),
		Rights: known(map[string]bool{}), Clocks: known(map[string]time.Duration{"h1": 300 * time.Millisecond, "h2": -200 * time.Millisecond}),
		PluginProblems: known([]string{}), Waveforms: known(12), Monitored: known(true), PullSecrets: known(PullSecrets{Account: []string{"registry"}}),
		KubeVirt: known(KubeVirt{Phase: "Deployed", Binding: true}),
	}
	for name, own := range ownDefinitions() {
		c.Kinds[own.Spec.Names.Kind+".vignette.dev"] = true
		c.Definitions.Value[name] = Definition{Established: true, Same: true}
	}
	for _, right := range Rights {
		c.Rights.Value[right.Name] = true
	}
	return c
}

func checkOf(t *testing.T, r Report, name string) Check {
	t.Helper()
	at := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("there is no check %s in %+v", name, r.Checks)
	}
	return r.Checks[at]
}

func TestASoundClusterLacksNothing(t *testing.T) {
	r := CheckCluster(sound())
	if !r.OK {
		t.Error("the report fails")
	}
	for _, c := range r.Checks {
		if c.State != OK || c.Found == "" || c.Remedy != "" {
			t.Errorf("%+v; want it ok, with what was found and no remedy", c)
		}
	}
}

func TestMissingPartsOfAClusterHaveARemedy(t *testing.T) {
	part := func(name string, change func(*Part)) func(*Cluster) {
		return func(c *Cluster) {
			p := c.Parts.Value[name]
			change(&p)
			c.Parts.Value[name] = p
		}
	}
	for name, c := range map[string]struct {
		harm          func(*Cluster)
		check         string
		state         State
		fails         bool
		found, remedy string
	}{
		"no cluster":              {func(c *Cluster) { c.Unreachable = "connection refused" }, "API server", Missing, true, "connection refused", "vignette doctor --local"},
		"an old Kubernetes":       {func(c *Cluster) { c.Version = "v1.32.2" }, "Kubernetes", Missing, true, "v1.32.2", "upgrade to 1.33 or newer"},
		"no host":                 {func(c *Cluster) { c.Hosts.Value[0].Ready, c.Hosts.Value[1].OS = false, "windows" }, "hosts", Missing, true, "0 of 2", "kubectl get nodes"},
		"no host that takes pods": {func(c *Cluster) { c.Hosts.Value[0].TakesPods, c.Hosts.Value[1].TakesPods = false, false }, "hosts", Missing, true, "2 of 2 are Linux and ready, and none takes pods", "kubectl label node NAME vignette.dev/experiments-"},
		"a host that is down":     {func(c *Cluster) { c.Hosts.Value[0].Ready = false }, "hosts", Warning, false, "1 of 2", "not ready: h1"},
		"an old kernel":           {func(c *Cluster) { c.Hosts.Value[1].Kernel = "4.19.0-1" }, "kernels", Warning, false, "4.19.0-1, 6.1.0", "before 5.4: h2"},
		"no Multus":               {func(c *Cluster) { delete(c.Kinds, "NetworkAttachmentDefinition.k8s.cni.cncf.io") }, "Multus", Missing, true, "no NetworkAttachmentDefinitions", "install Multus"},
		"Multus down":             {part(Multus, func(p *Part) { p.Ready = 0 }), "Multus", Missing, true, "0 of 2", "kubectl get daemonsets"},
		"Multus on some hosts":    {part(Multus, func(p *Part) { p.Ready = 1 }), "Multus", Warning, false, "1 of 2", "every host"},
		"another folder":          {part(Multus, func(p *Part) { p.BinDir = "/var/lib/rancher/bin" }), "CNI folder", Warning, false, "/opt/cni/bin, Multus to /var/lib/rancher/bin", "radiod.cniBinDir"},
		"a plugin not found":      {func(c *Cluster) { c.PluginProblems = known([]string{"team-nor/a-hq"}) }, "CNI folder", Missing, true, "team-nor/a-hq", "radiod.cniBinDir"},
		"no Argo":                 {func(c *Cluster) { delete(c.Kinds, "Workflow.argoproj.io") }, "Argo Workflows", Missing, true, "no Workflows", "install Argo"},
		"no workflow template":    {func(c *Cluster) { c.Template = known(false) }, "Argo Workflows", Missing, true, "vignette-experiment", "chart"},
		"Argo's controller down":  {part(Argo, func(p *Part) { p.Ready = 0 }), "Argo Workflows", Missing, true, "0 of 1", "workflow-controller"},
		"nothing of the platform": {func(c *Cluster) { clear(c.Kinds) }, "definitions", Missing, true, "does not know", "install the chart"},
		"a definition missing":    {func(c *Cluster) { delete(c.Kinds, "Capture.vignette.dev") }, "definitions", Missing, true, "Capture", "kubectl apply --server-side --force-conflicts -f crds/"},
		"older definitions":       {func(c *Cluster) { c.Definitions.Value["experiments.vignette.dev"] = Definition{Established: true} }, "definitions", Warning, false, "experiments.vignette.dev", "crds/"},
		"no operator":             {func(c *Cluster) { delete(c.Parts.Value, Operator) }, "operator", Missing, true, "not in namespace vignette-system", "--platform-namespace"},
		"the server down":         {part(Server, func(p *Part) { p.Ready = 0 }), "server", Missing, true, "0 of 1", "kubectl -n vignette-system describe pods"},
		"radiod on some hosts":    {part(Radiod, func(p *Part) { p.Ready = 1 }), "radiod", Warning, false, "1 of 2", "describe pods"},
		"an earlier radiod":       {part(Radiod, func(p *Part) { p.Outdated = 1 }), "radiod", Warning, false, "1 of an earlier version", "delete pod"},
		"images of two versions":  {part(Server, func(p *Part) { p.Image = "r/server:2" }), "versions", Warning, false, "1 and 2", "upgrade the chart"},
		"another program":         {func(c *Cluster) { c.Program = "0.2.0" }, "versions", Warning, false, "platform is 0.1.0, this program 0.2.0", "vignette command"},
		"no archive":              {func(c *Cluster) { c.Archive = known("not available: no endpoints") }, "archive's API", Missing, true, "no endpoints", "kubectl describe apiservice"},
		"no class":                {func(c *Cluster) { c.Storage = known(Storage{}) }, "storage", Missing, true, "no default StorageClass", "storageClassName"},
		"a claim that is not":     {func(c *Cluster) { c.Storage = known(Storage{Name: "own", Absent: true}) }, "storage", Missing, true, "no claim own", "existingClaim"},
		"the chart's, gone":       {func(c *Cluster) { c.Storage = known(Storage{Name: ownClaim, Absent: true}) }, "storage", Missing, true, "no claim vignette-archive", "helm upgrade"},
		"a claim that waits":      {func(c *Cluster) { c.Storage = known(Storage{Claim: "Pending", Default: "d"}) }, "storage", Missing, true, "Pending", "describe pvc"},
		"too strict a namespace":  {func(c *Cluster) { c.PodSecurity = known("restricted") }, "Pod Security", Missing, true, "enforces restricted", "enforce=privileged"},
		"no Secret to pull with":  {func(c *Cluster) { c.PullSecrets.Value.Absent = []string{"registry"} }, "pull secrets", Warning, false, "not in namespace team-nor: registry", "create them there"},
		"one that is not used":    {func(c *Cluster) { c.PullSecrets.Value.Account = nil }, "pull secrets", Warning, false, "does not name registry", "that account's"},
		"no waveforms":            {func(c *Cluster) { c.Waveforms = known(0) }, "waveforms", Warning, false, "none", "waveforms.create"},
		"a clock that is off":     {func(c *Cluster) { c.Clocks.Value["h2"] = -4 * time.Second }, "clocks", Warning, false, "h2 by -4s", "synchronise"},
		"no right to run":         {func(c *Cluster) { c.Rights.Value["run experiments"] = false }, "right: run experiments", Missing, true, "not in namespace team-nor", "vignette-experimenter"},
		"no right to capture":     {func(c *Cluster) { c.Rights.Value["capture frames"] = false }, "right: capture frames", Warning, false, "team-nor", "vignette capture"},
		"no metrics":              {func(c *Cluster) { delete(c.Kinds, "NodeMetrics.metrics.k8s.io") }, "metrics API", Warning, false, "not served", "metrics-server"},
		"no Prometheus":           {func(c *Cluster) { delete(c.Kinds, "PodMonitor.monitoring.coreos.com") }, "live results", Warning, false, "no Prometheus", "monitoring.prometheus.enabled"},
		"KubeVirt without radios": {func(c *Cluster) { c.KubeVirt.Value.Binding = false }, "virtual machines", Warning, false, "no network binding vignette-radio", "install.md#virtual-machines"},
		"KubeVirt on its way":     {func(c *Cluster) { c.KubeVirt.Value.Phase = "Deploying" }, "virtual machines", Warning, false, "KubeVirt is Deploying", "kubectl get pods"},
		"KubeVirt's kinds alone":  {func(c *Cluster) { c.KubeVirt = known(KubeVirt{}) }, "virtual machines", Warning, false, "no KubeVirt object", "install.md#virtual-machines"},
		"no PodMonitors":          {func(c *Cluster) { c.Monitored = known(false) }, "live results", Warning, false, "PodMonitors of the platform are not", "helm upgrade again"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := sound()
			c.harm(&cluster)
			r := CheckCluster(cluster)
			got := checkOf(t, r, c.check)
			if got.State != c.state || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Remedy, c.remedy) {
				t.Errorf("%+v; want it %s, found …%s…, remedy …%s…", got, c.state, c.found, c.remedy)
			}
			if r.OK == c.fails {
				t.Errorf("the report is ok: %v; want %v", r.OK, !c.fails)
			}
		})
	}
}

func TestUnreadableFactsAreUnknownAndFailNothing(t *testing.T) {
	c := sound()
	const no = "you may not read it"
	c.Hosts, c.Definitions, c.Parts, c.Template = unknown[[]Host](no), unknown[map[string]Definition](no), unknown[map[string]Part](no), unknown[bool](no)
	c.Archive, c.Storage, c.PodSecurity, c.Rights = unknown[string](no), unknown[Storage](no), unknown[string](no), unknown[map[string]bool](no)
	c.Clocks, c.PluginProblems, c.Waveforms, c.Monitored = unknown[map[string]time.Duration](no), unknown[[]string](no), unknown[int](no), unknown[bool](no)
	c.KubeVirt = unknown[KubeVirt](no)
	r := CheckCluster(c)
	if !r.OK {
		t.Error("the report fails by what is not known")
	}
	for _, name := range []string{"hosts", "kernels", "CNI folder", "operator", "radiod", "versions", "archive's API", "storage", "Pod Security", "clocks", "waveforms", "live results", "virtual machines", "right: run experiments"} {
		if got := checkOf(t, r, name); got.State != Unknown || got.Found != no {
			t.Errorf("%+v; want it unknown", got)
		}
	}
}

func TestTheTagOfAnImage(t *testing.T) {
	for image, want := range map[string]string{"r:5000/a/operator:1.2": "1.2", "operator": "", "operator@sha256:ab": "sha256:ab", "operator:1@sha256:ab": "1"} {
		if got := tag(image); got != want {
			t.Errorf("%s has tag %q; want %q", image, got, want)
		}
	}
}

func TestTheNewestWriteOfALeaseCounts(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fields := []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: at.Add(time.Second)}}, {}, {Time: &metav1.Time{Time: at}}}
	if got := latest(fields); !got.Equal(at.Add(time.Second)) {
		t.Errorf("got %s", got)
	}
}

// able is a machine that has everything.
func able() Machine {
	m := Machine{OS: "linux", Arch: "amd64", Kernel: "6.1.0", Root: true, Checkout: "/src/vignette", Programs: map[string]string{"go": "1.26.1", "python3": "3.11.2", "make": "4.3"},
		Features: known(map[string]bool{}), Home: "/var/cache/vignette", FreeDiskBytes: 100 << 30, MemoryBytes: 8 << 30, CanInstall: true}
	for program := range Packages {
		m.Programs[program] = ""
	}
	for feature := range KernelFeatures {
		m.Features.Value[feature] = true
	}
	return m
}

func TestMissingPartsOfAMachineHaveARemedy(t *testing.T) {
	if r := CheckMachine(able()); !r.OK || slices.ContainsFunc(r.Checks, func(c Check) bool { return c.State != OK || c.Remedy != "" }) {
		t.Errorf("a sound machine: %+v", r)
	}
	for name, c := range map[string]struct {
		harm          func(*Machine)
		check         string
		state         State
		found, remedy string
	}{
		"another system":       {func(m *Machine) { m.OS = "darwin" }, "system", Missing, "darwin", "needs Linux"},
		"a plain user":         {func(m *Machine) { m.Root = false }, "user", Missing, "not root", "as root"},
		"no checkout":          {func(m *Machine) { m.Checkout = "" }, "repository", Missing, "not in a checkout", "checkout"},
		"no Go":                {func(m *Machine) { delete(m.Programs, "go") }, "go", Missing, "not on the PATH", "go.dev"},
		"an old Go":            {func(m *Machine) { m.Programs["go"] = "1.19.8" }, "go", Missing, "1.19.8", "1.26 or newer"},
		"an old Python":        {func(m *Machine) { m.Programs["python3"] = "3.9.2" }, "python3", Missing, "3.9.2", "3.11 or newer"},
		"packages, with apt":   {func(m *Machine) { delete(m.Programs, "nft"); delete(m.Programs, "buildah") }, "packages", OK, "make demo installs buildah, nftables", ""},
		"packages, without":    {func(m *Machine) { delete(m.Programs, "runc"); m.CanInstall = false }, "packages", Missing, "without runc", "no apt-get"},
		"a kernel without TUN": {func(m *Machine) { m.Features.Value["tun"] = false }, "kernel", Missing, "without TUN/TAP", "linux-image-amd64"},
		"a silent kernel":      {func(m *Machine) { m.Features = unknown[map[string]bool]("it does not say") }, "kernel", Unknown, "it does not say", ""},
		"little room":          {func(m *Machine) { m.FreeDiskBytes = 6 << 30 }, "disk", Warning, "6.0 GiB free", "15.0 GiB"},
		"no room":              {func(m *Machine) { m.FreeDiskBytes = 1 << 30 }, "disk", Missing, "1.0 GiB free", "VIGNETTE_HOME"},
		"little memory":        {func(m *Machine) { m.MemoryBytes = 1 << 30 }, "memory", Missing, "1.0 GiB", "2.0 GiB"},
		"taken addresses":      {func(m *Machine) { m.OverlappingSubnets = []string{"eth0 has 10.130.0.7/16"} }, "addresses", Warning, "eth0 has 10.130.0.7/16", "10.128.0.0/14"},
	} {
		t.Run(name, func(t *testing.T) {
			m := able()
			c.harm(&m)
			r := CheckMachine(m)
			got := checkOf(t, r, c.check)
			if got.State != c.state || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Remedy, c.remedy) {
				t.Errorf("%+v; want it %s, found …%s…, remedy …%s…", got, c.state, c.found, c.remedy)
			}
			if r.OK != (c.state != Missing) {
				t.Errorf("the report is ok: %v", r.OK)
			}
		})
	}
}

func TestTheKernelIsAskedInSeveralWays(t *testing.T) {
	write := func(root, path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	if got := kernelFeatures(root, "6.1"); !got.IsUnknown() {
		t.Errorf("a kernel that says nothing: %+v; want it unknown", got)
	}
	write(root, "lib/modules/6.1/modules.dep", "kernel/net/bridge/br_netfilter.ko: kernel/net/bridge/bridge.ko\nkernel/drivers/net/veth.ko.xz:\n")
	write(root, "lib/modules/6.1/modules.builtin", "kernel/net/netfilter/nf_tables.ko\n")
	write(root, "proc/filesystems", "nodev\tcgroup2\nnodev\toverlay\n")
	write(root, "dev/net/tun", "")
	write(root, "proc/self/ns/net", "")
	write(root, "proc/self/ns/pid", "")
	write(root, "sys/module/nft_chain_nat/initstate", "live")
	got := kernelFeatures(root, "6.1").Value
	for name := range KernelFeatures {
		if want := name != "xt_comment"; got[name] != want {
			t.Errorf("%s: %v; want %v", name, got[name], want)
		}
	}
	packed, err := os.Create(filepath.Join(root, "proc/config.gz"))
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(packed)
	if _, err := w.Write([]byte("# a kernel\nCONFIG_NETFILTER_XT_MATCH_COMMENT=m\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := kernelFeatures(root, "6.1").Value; !got["xt_comment"] {
		t.Error("the kernel's configuration was not read")
	}
}

func TestThisMachineIsRead(t *testing.T) {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	m := GatherMachine(t.Context(), folder)
	if m.OS == "" || m.Kernel == "" || m.MemoryBytes < 1<<20 || m.FreeDiskBytes <= 0 || m.Home == "" || m.Checkout == "" {
		t.Errorf("facts %+v; want system, memory, disk and checkout", m)
	}
	if v := m.Programs["go"]; !strings.HasPrefix(v, "1.") {
		t.Errorf("Go has version %q", v)
	}
	if outside := checkoutAt(t.TempDir()); outside != "" {
		t.Errorf("a folder outside of the repository is %s", outside)
	}
}

// TestThePackagesAreThoseOfTheDeveloperCluster reads the other module's source: neither imports the other.
func TestThePackagesAreThoseOfTheDeveloperCluster(t *testing.T) {
	text := readText("../../hack/devcluster/machine/machine.go")
	pairs := func(name string) map[string]string {
		found := map[string]string{}
		block := regexp.MustCompile(`(?s)var ` + name + ` = map\[string\]string\{(.*?)\}`).FindStringSubmatch(text)
		if block == nil {
			t.Fatalf("%s is not in the developer cluster's source", name)
		}
		for _, m := range regexp.MustCompile(`"([^"]+)": "([^"]+)"`).FindAllStringSubmatch(block[1], -1) {
			found[m[1]] = m[2]
		}
		return found
	}
	want := pairs("packages")
	for program, name := range pairs("ImagePackages") {
		want[program] = name
	}
	for program, name := range want {
		if Packages[program] != name {
			t.Errorf("%s is in package %q; the developer cluster says %q", program, Packages[program], name)
		}
	}
	if len(want) != len(Packages) {
		t.Errorf("%d programs; the developer cluster has %d", len(Packages), len(want))
	}
	modules := regexp.MustCompile(`var modules = \[\]string\{(.*)\}`).FindStringSubmatch(text)
	if modules == nil {
		t.Fatal("the developer cluster's modules are not in its source")
	}
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(modules[1], -1) {
		if KernelFeatures[m[1]] == "" {
			t.Errorf("module %s is not checked", m[1])
		}
	}
}
