// Package charts holds the Helm charts; its test renders what guards teams from each other.
package charts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/internal/testteam"
)

// server is for the tests that need an ordinary API server, with objects of their own.
var server testkube.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
		code = 1
	}
	os.Exit(code)
}

// helm of the PATH, or of the developer cluster.
func helm(t *testing.T) string {
	t.Helper()
	found := testteam.Helm()
	if found == "" {
		t.Skip("no helm on the PATH: hack/cluster up builds it")
	}
	return found
}

func render(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command(helm(t), append([]string{"template"}, arguments...)...)
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", arguments, err, errs.String())
	}
	return string(out)
}

// decode every object as Kubernetes' types have it, with no field that they do not.
func decode(t *testing.T, manifests string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(manifests)))
	defer documents.Close()
	text := make([]byte, 1<<20)
	for {
		n, err := documents.Read(text)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := strict.Decode(text[:n], nil, nil); err != nil {
			t.Errorf("%v in\n%s", err, text[:n])
		}
	}
}

func TestWhatGuardsTeamsFromEachOther(t *testing.T) {
	for name, arguments := range map[string][]string{
		"roles.yaml": {"vignette", "vignette", "-n", "vignette-system", "-s", "templates/roles.yaml"},
		"networkpolicies.yaml": {"vignette", "vignette", "-n", "vignette-system", "-s", "templates/networkpolicies.yaml",
			"--set", `networkPolicies.metricsFrom[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=monitoring`},
		"console.yaml": {"vignette", "vignette", "-n", "vignette-system", "-s", "templates/console.yaml", "--set", "console.enabled=true", "--set", "console.origin=https://console.example",
			"--set", "console.oidc.issuer=https://login.example", "--set", "console.oidc.clientID=vignette", "--set", "console.oidc.clientSecret=console-login", "--set", "console.oidc.caConfigMap=login-ca",
			"--set", "console.map.claim=maps", "--set", "console.map.file=norway.pmtiles"},
		"team.yaml": {"team-nor", "vignette-team", "-n", "team-nor", "--set", "viewers.groups={nor,allies}", "--set", "experimenters.users={anna@example.org}",
			"--set", "quota.pods=60", "--set", `networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=monitoring`},
		"team-plain.yaml": {"team-nor", "vignette-team", "-n", "team-nor"},
	} {
		t.Run(name, func(t *testing.T) {
			made := render(t, arguments...)
			decode(t, made)
			golden.Check(t, name, made)
		})
	}
}

func TestNamesOfDigitsStayNames(t *testing.T) {
	team := "networkPolicy.platformNamespace=1,networkPolicy.kubevirtNamespace=2,networkPolicy.dnsNamespace=3,viewers.users={4},viewers.groups={5}"
	decode(t, render(t, "team-nor", "vignette-team", "--set", "networkPolicy.clusterDNS=true", "--set-string", team))
	platform := "console.origin=https://console.example,console.oidc.issuer=https://login.example,console.oidc.clientID=1,console.oidc.clientSecret=2,console.oidc.caConfigMap=3," +
		"console.map.claim=4,console.map.file=5,monitoring.dashboards.namespace=6,radiod.dnsNamespace=7"
	for _, part := range []string{"console", "monitoring", "radiod"} {
		decode(t, render(t, "vignette", "vignette", "-s", "templates/"+part+".yaml", "--set", "console.enabled=true,nodes.clusterDNS=true", "--set-string", platform))
	}
	for value, want := range map[string]string{"storageClassName": `storageClassName: "8"`, "existingClaim": `claimName: "8"`} {
		made := render(t, "vignette", "vignette", "-s", "templates/server.yaml", "--set-string", "server.storage."+value+"=8")
		if !strings.Contains(made, want) {
			t.Errorf("the server has no %s in\n%s", want, made)
		}
	}
}

// TestAnAnnotationOfThePlatformsPodsCanBeReplaced: Flux and Kustomize refuse a key that is there twice.
func TestAnAnnotationOfThePlatformsPodsCanBeReplaced(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "--set-string", `podAnnotations.prometheus\.io/scrape=false,podAnnotations.a=b`, "--set", "radiod.metricsPort=9700")
	found := map[string]map[string]string{}
	for document := range strings.SplitSeq(made, "\n---\n") {
		var pods appsv1.Deployment // DaemonSets have their template at the same place
		if err := yaml.Unmarshal([]byte(document), &pods); err != nil || pods.Kind != "Deployment" && pods.Kind != "DaemonSet" {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), &map[string]any{}); err != nil {
			t.Errorf("%s: %v", pods.Name, err)
		}
		found[pods.Name] = pods.Spec.Template.Annotations
	}
	for name, port := range map[string]string{"vignette-operator": "8080", "vignette-server": "9090", "vignette-radiod": "9700"} {
		if has := found[name]; has["prometheus.io/scrape"] != "false" || has["prometheus.io/port"] != port || has["a"] != "b" {
			t.Errorf("%s has the annotations %v", name, has)
		}
	}
}

func TestOneOperatorWorksAtATime(t *testing.T) {
	for replicas, want := range map[string]struct {
		strategy appsv1.DeploymentStrategyType
		election string
	}{"1": {appsv1.RecreateDeploymentStrategyType, "--leader-elect=false"}, "2": {appsv1.RollingUpdateDeploymentStrategyType, "--leader-elect=true"}} {
		operator := deployment(t, "vignette-operator", render(t, "vignette", "vignette", "-n", "vignette-system", "--set", "operator.replicas="+replicas))
		if got := operator.Spec.Strategy.Type; got != want.strategy {
			t.Errorf("%s replicas have the strategy %q, want %q", replicas, got, want.strategy)
		}
		if args := operator.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, want.election) {
			t.Errorf("%s replicas have the arguments %q, want %s", replicas, args, want.election)
		}
	}
}

func TestTheConsoleCountsWithTheMemoryLimitOfTheOperator(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "--set", "apps.memoryLimit=1Gi", "--set", "console.enabled=true", "--set", "console.origin=https://console.example",
		"--set", "console.oidc.issuer=https://login.example", "--set", "console.oidc.clientID=vignette")
	for _, name := range []string{"vignette-operator", "vignette-console"} {
		if args := deployment(t, name, made).Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--app-memory-limit=1Gi") {
			t.Errorf("%s has the arguments %q, want --app-memory-limit=1Gi", name, args)
		}
	}
}

// TestWhatTheOperatorMakesIsPulledAsTheValuesSay: the workflow's pods, and those for which the operator has the Secrets' names.
func TestWhatTheOperatorMakesIsPulledAsTheValuesSay(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "--set", "images.pullPolicy=Always", "--set", "images.pullSecrets[0].name=one", "--set", "images.pullSecrets[1].name=two")
	if args := deployment(t, "vignette-operator", made).Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--image-pull-secrets=one,two") {
		t.Errorf("the operator has the arguments %q, want --image-pull-secrets=one,two", args)
	}
	_, workflow, _ := strings.Cut(made, "kind: ClusterWorkflowTemplate")
	workflow, _, _ = strings.Cut(workflow, "\n---\n")
	if always, all := strings.Count(workflow, "imagePullPolicy: Always"), strings.Count(workflow, "imagePullPolicy:"); all == 0 || always != all {
		t.Errorf("%d of the workflow's %d containers have the policy Always", always, all)
	}
}

// deployment of a name among rendered objects.
func deployment(t *testing.T, name, manifests string) (d appsv1.Deployment) {
	t.Helper()
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		d = appsv1.Deployment{}
		if strings.Contains(document, "kind: Deployment") && yaml.Unmarshal([]byte(document), &d) == nil && d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no Deployment %s", name)
	return d
}

// TestTheConsoleHasNoRights: none of Kubernetes, and no token with which to ask for any.
func TestTheConsoleHasNoRights(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "--set", "console.enabled=true", "--set", "console.origin=https://console.example",
		"--set", "console.oidc.issuer=https://login.example", "--set", "console.oidc.clientID=vignette")
	deployments := 0
	for document := range strings.SplitSeq(made, "\n---\n") {
		if strings.Contains(document, "RoleBinding\n") && strings.Contains(document, "vignette-console") {
			t.Errorf("the console has a role:\n%s", document)
		}
		var d appsv1.Deployment
		if !strings.Contains(document, "kind: Deployment") || yaml.Unmarshal([]byte(document), &d) != nil || d.Name != "vignette-console" {
			continue
		}
		deployments++
		pod := d.Spec.Template.Spec
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || strings.Contains(document, "serviceAccountToken:") {
			t.Errorf("the console has a token:\n%s", document)
		}
	}
	if deployments != 1 {
		t.Errorf("%d Deployments of the console, want 1", deployments)
	}
}

// TestTheConsoleCanWriteTemporaryFiles: its image has the program alone, and its root is read-only.
func TestTheConsoleCanWriteTemporaryFiles(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/console.yaml", "--set", "console.enabled=true", "--set", "console.origin=https://console.example",
		"--set", "console.oidc.issuer=https://login.example", "--set", "console.oidc.clientID=vignette")
	for document := range strings.SplitSeq(made, "\n---\n") {
		var d appsv1.Deployment
		if !strings.Contains(document, "kind: Deployment") || yaml.Unmarshal([]byte(document), &d) != nil {
			continue
		}
		pod := d.Spec.Template.Spec
		mount := slices.IndexFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/tmp" && !m.ReadOnly })
		if mount < 0 {
			t.Fatalf("nothing is mounted at /tmp:\n%s", document)
		}
		name := pod.Containers[0].VolumeMounts[mount].Name
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name && v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil }) {
			t.Errorf("volume %s is no emptyDir with a limit:\n%s", name, document)
		}
		return
	}
	t.Fatal("there is no Deployment")
}

// TestALargeArchiveHasTimeToOpen: nothing ends the server meanwhile, or visits each of the archive's files before it starts.
func TestALargeArchiveHasTimeToOpen(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/server.yaml")
	const needed = 30 * 60
	for document := range strings.SplitSeq(made, "\n---\n") {
		var d appsv1.Deployment
		if !strings.Contains(document, "kind: Deployment") || yaml.Unmarshal([]byte(document), &d) != nil {
			continue
		}
		pod := d.Spec.Template.Spec
		probe := pod.Containers[0].StartupProbe
		if probe == nil || probe.PeriodSeconds*probe.FailureThreshold < needed {
			t.Errorf("the startup probe is %+v; want half an hour", probe)
		}
		if d.Spec.ProgressDeadlineSeconds == nil || *d.Spec.ProgressDeadlineSeconds <= needed {
			t.Errorf("the Deployment fails before the startup probe does:\n%s", document)
		}
		if policy := pod.SecurityContext.FSGroupChangePolicy; policy == nil || *policy != corev1.FSGroupChangeOnRootMismatch {
			t.Errorf("fsGroupChangePolicy is not OnRootMismatch:\n%s", document)
		}
		return
	}
	t.Fatal("there is no Deployment")
}

// TestMetricsOfAllTeamsAreForReadersOnly: what listens for other pods asks for a token, and what scrapes it has one.
func TestMetricsOfAllTeamsAreForReadersOnly(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/monitoring.yaml", "--set", "monitoring.prometheus.enabled=true",
		"--api-versions", "monitoring.coreos.com/v1/PodMonitor")
	monitors := 0
	for document := range strings.SplitSeq(made, "\n---\n") {
		switch {
		case strings.Contains(document, "kind: PodMonitor") && strings.Contains(document, "port: metrics"):
			monitors++
			if !strings.Contains(document, "authorization: {credentials: {name: vignette-metrics-reader, key: token}}") {
				t.Errorf("it sends no token:\n%s", document)
			}
		case strings.Contains(document, "kind: Deployment"):
			onlyTheGuardListens(t, document)
		}
	}
	if monitors != 3 {
		t.Errorf("%d PodMonitors of the platform's parts, want 3", monitors)
	}
	config, err := os.ReadFile("vignette/files/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	if jobs, tokens := strings.Count(string(config), "job_name:"), strings.Count(string(config), "credentials_file:"); jobs != tokens || jobs == 0 {
		t.Errorf("%d jobs of Prometheus, of which %d send a token", jobs, tokens)
	}
}

// prometheus that the chart makes with values, and its configuration.
func prometheus(t *testing.T, set string) (pod corev1.PodTemplateSpec, config string) {
	t.Helper()
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/monitoring.yaml", "--set", "monitoring.prometheus.enabled=true,"+set)
	return deployment(t, "vignette-prometheus", made).Spec.Template, made
}

// TestPrometheusStartsAnewWithItsConfiguration: it does not read a changed one.
func TestPrometheusStartsAnewWithItsConfiguration(t *testing.T) {
	before, _ := prometheus(t, "radiod.metricsPort=9600")
	after, config := prometheus(t, "radiod.metricsPort=9700")
	if !strings.Contains(config, "port: 9700") {
		t.Errorf("Prometheus does not ask port 9700:\n%s", config)
	}
	if sum := after.Annotations["checksum/config"]; sum == "" || sum == before.Annotations["checksum/config"] {
		t.Errorf("its pod has the checksum %q with either port", sum)
	}
}

// allPods are the pods' templates of everything that the chart can install, by the name of what makes them.
func allPods(t *testing.T, arguments ...string) (pods map[string]corev1.PodTemplateSpec, manifests string) {
	t.Helper()
	manifests = render(t, append([]string{"vignette", "vignette", "-n", "vignette-system", "--set", "monitoring.prometheus.enabled=true,console.enabled=true,console.origin=https://console.example",
		"--set", "console.oidc.issuer=https://login.example,console.oidc.clientID=vignette"}, arguments...)...)
	pods = map[string]corev1.PodTemplateSpec{}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var d appsv1.Deployment // DaemonSets have their template at the same place
		if yaml.Unmarshal([]byte(document), &d) == nil && (d.Kind == "Deployment" || d.Kind == "DaemonSet") {
			pods[d.Name] = d.Spec.Template
		}
	}
	if len(pods) != 5 {
		t.Errorf("%d workloads, want operator, server, console, Prometheus and radiod", len(pods))
	}
	return pods, manifests
}

// TestPrometheusFindsThePartsInEitherFamily: their Services have addresses of the cluster's first one.
func TestPrometheusFindsThePartsInEitherFamily(t *testing.T) {
	_, config := prometheus(t, "radiod.metricsPort=9700")
	for part, port := range map[string]string{"server": "9090", "operator": "8080", "radiod": "9700"} {
		for _, family := range []string{"A", "AAAA"} {
			if want := "{names: [vignette-" + part + "-metrics], type: " + family + ", port: " + port + ","; !strings.Contains(config, want) {
				t.Errorf("Prometheus does not look up %s", want)
			}
		}
	}
}

// TestEveryPodOfThePlatformHasThePodAnnotations that the values ask for.
func TestEveryPodOfThePlatformHasThePodAnnotations(t *testing.T) {
	pods, made := allPods(t, "--set", "podAnnotations.mesh=none")
	for name, pod := range pods {
		if got := pod.Annotations["mesh"]; got != "none" {
			t.Errorf("pods of %s have the annotation mesh %q, want none", name, got)
		}
	}
	if args := deployment(t, "vignette-operator", made).Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, `--emane-annotations={"mesh":"none"}`) {
		t.Errorf("the operator has the arguments %q, want the annotations for EMANE's pods", args)
	}
}

// TestAQuotaOfRequestsAdmitsThePlatform: Kubernetes refuses a pod of which one container has none.
func TestAQuotaOfRequestsAdmitsThePlatform(t *testing.T) {
	pods, _ := allPods(t)
	for name, pod := range pods {
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
				t.Errorf("%s: container %s requests %v, want cpu and memory", name, c.Name, c.Resources.Requests)
			}
		}
	}
}

// TestThePlatformRunsWhereTheValuesSay: radiod has values of its own.
func TestThePlatformRunsWhereTheValuesSay(t *testing.T) {
	pods, _ := allPods(t, "--set", "nodeSelector.pool=platform,tolerations[0].key=platform,tolerations[0].operator=Exists,priorityClassName=high")
	for name, pod := range pods {
		moved := pod.Spec.NodeSelector["pool"] == "platform" && pod.Spec.PriorityClassName == "high" && len(pod.Spec.Tolerations) == 1 && pod.Spec.Tolerations[0].Key == "platform"
		if linux := pod.Spec.NodeSelector[corev1.LabelOSStable] == "linux"; !linux || moved == (name == "vignette-radiod") {
			t.Errorf("%s has the selector %v, the tolerations %v and the priority class %q", name, pod.Spec.NodeSelector, pod.Spec.Tolerations, pod.Spec.PriorityClassName)
		}
	}
}

// TestThePluginIsInstalledUnderSELinux: a container of the usual type may not write into the host's folder.
func TestThePluginIsInstalledUnderSELinux(t *testing.T) {
	pods, _ := allPods(t)
	c := pods["vignette-radiod"].Spec.InitContainers[0]
	if options := c.SecurityContext.SELinuxOptions; options == nil || options.Type != "spc_t" {
		t.Errorf("container %s has the SELinux options %v, want type spc_t", c.Name, options)
	}
}

// onlyTheGuardListens for others than Prometheus' own pod.
func onlyTheGuardListens(t *testing.T, manifest string) {
	t.Helper()
	var prometheus appsv1.Deployment
	if err := yaml.Unmarshal([]byte(manifest), &prometheus); err != nil {
		t.Fatal(err)
	}
	for _, c := range prometheus.Spec.Template.Spec.Containers {
		loopback := slices.Contains(c.Args, "--web.listen-address=127.0.0.1:9091")
		if guard := c.Name == "guard"; guard != (len(c.Ports) > 0) || guard == loopback {
			t.Errorf("container %s has ports %v and arguments %q", c.Name, c.Ports, c.Args)
		}
	}
}

func TestRadiodWatchesOnlyTheNamespacesItIsToldOf(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/radiod.yaml",
		"--set", "radiod.appMetricsReaders[0].namespace=monitoring", "--set", "radiod.appMetricsReaders[0].service=prometheus-operated",
		"--set", "radiod.appMetricsReaders[1].namespace=vignette-system", "--set", "radiod.appMetricsReaders[1].service=own")
	for part, count := range map[string]int{"--app-metrics-readers=monitoring/prometheus-operated,vignette-system/own\n": 1, `namespace: "monitoring"`: 2, `namespace: "kube-system"`: 0} {
		if got := strings.Count(made, part); got != count {
			t.Errorf("%q is there %d times, want %d", part, got, count)
		}
	}
}

func TestATeamsQuotaMayBeNoBound(t *testing.T) {
	made := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/server.yaml", "--set", "server.teams.team-nor.quota=0", "--set", "server.teams.team-prt.retention=0s")
	for part, count := range map[string]int{"--team-quotas=team-nor=0\n": 1, "--team-quotas": 1, "--team-retentions=team-prt=0s\n": 1, "--team-retentions": 1} {
		if got := strings.Count(made, part); got != count {
			t.Errorf("%q is there %d times, want %d", part, got, count)
		}
	}
}
