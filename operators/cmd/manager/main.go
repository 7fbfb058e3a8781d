// The operator: one manager for the controllers of Experiments, Campaigns and Scenarios.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	kubeclient "k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsregistry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/metricreaders"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/campaign"
	"vignette.dev/vignette/operators/experiment"
	"vignette.dev/vignette/operators/experiment/cleanup"
	"vignette.dev/vignette/operators/experiment/events"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/metrics"
	"vignette.dev/vignette/operators/scenario"
)

type config struct {
	options               experiment.Options
	tokenFile             string
	metrics, probes       string
	pprof                 string
	leaderElect           bool
	concurrent, verbosity int
	clusterCIDRs          string
	pullPolicy            string
	pullSecrets           string
	memoryLimit           string
	scratchLimit          string
	registry, tag         string
}

func main() {
	c := parseFlags()
	if err := c.complete(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(2)
	}
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func parseFlags() *config {
	c := &config{options: experiment.DefaultOptions()}
	o, r := &c.options, &c.options.Render
	flag.StringVar(&r.Namespace, "namespace", "vignette-system", "the platform's namespace, which has the RadioNetworks")
	flag.StringVar(&r.ServerURL, "server-url", "http://vignette-server.vignette-system.svc", "base `URL` of the server, for the operator, agents and workflows")
	flag.StringVar(&c.tokenFile, "server-token-file", "", "`file` of the projected token for the server, of audience "+v1alpha1.TokenAudience)
	flag.StringVar(&c.registry, "image-registry", "", "registry and path of the platform's images, for those without a flag of their own")
	flag.StringVar(&c.tag, "image-tag", "latest", "tag of the platform's images, for those without a flag of their own")
	flag.StringVar(&r.AgentImage, "agent-image", "", "image of the agent")
	flag.StringVar(&r.Apps.Traffic, "traffic-image", "", "image of the traffic generator")
	flag.StringVar(&r.Apps.Mosquitto, "mosquitto-image", "", "image of Mosquitto")
	flag.StringVar(&r.Apps.MGEN, "mgen-image", "", "image of Debian's mgen with the program that runs it for an app")
	flag.StringVar(&r.Apps.RabbitMQ, "rabbitmq-image", "", "image of RabbitMQ")
	flag.StringVar(&r.Apps.VerneMQ, "vernemq-image", "", "image of VerneMQ, as upstream ships it")
	flag.BoolVar(&r.Apps.VerneMQAcceptEULA, "vernemq-accept-eula", false, "accept the agreement under which VerneMQ's makers publish their image")
	flag.StringVar(&r.Apps.Prosody, "prosody-image", "", "image of Prosody")
	flag.StringVar(&r.Apps.ZeroMQ, "zeromq-image", "", "image of the traffic generator with libzmq, which protocol zeromq needs")
	flag.StringVar(&r.Apps.WSNCXF, "wsn-cxf-image", "", "image of Apache CXF's WS-Notification broker")
	flag.StringVar(&r.ServerImage, "server-image", "", "image of the server, which the step collect runs")
	flag.StringVar(&r.AnalysisImage, "analysis-image", "", "image of the analysis")
	flag.StringVar(&r.GuestImage, "guest-image", "", "container disk of virtual machines that name no disk of their own")
	flag.StringVar(&r.GuestToolsImage, "guest-tools-image", "", "container disk with the agent and the platform's programs, for guests")
	flag.StringVar(&r.ToolboxImage, "toolbox-image", "", "image with tools for networks, for vignette shell --toolbox")
	flag.StringVar(&r.EMANEImage, "emane-image", "", "image of EMANE, for networks with engine emane; without it experiments with such networks are not accepted")
	flag.Func("emane-annotations", "annotations of EMANE's pods, as a `JSON` object of strings", func(text string) error {
		return json.Unmarshal([]byte(text), &r.EMANEAnnotations)
	})
	flag.StringVar(&c.memoryLimit, render.MemoryLimitFlag, render.DefaultMemoryLimit, "memory of an app's container that states no limit, and 64Mi more for each further instance; 0 is no limit")
	flag.StringVar(&c.scratchLimit, "app-scratch-limit", "1Gi", "most that an app may have in each of its folders for data and for /tmp; 0 is no limit")
	flag.BoolVar(&r.ClusterDNS, "cluster-dns", false, "let nodes use the cluster's DNS, by which they can exchange signals without their radios")
	flag.StringVar(&c.pullPolicy, "image-pull-policy", string(corev1.PullIfNotPresent), "Always, IfNotPresent or Never")
	flag.StringVar(&c.pullSecrets, "image-pull-secrets", "", "comma-separated `names` of Secrets with which EMANE's pods and the workflow's pull their images")
	flag.DurationVar(&o.StartLead, "start-lead", o.StartLead, "time from \"every agent is ready\" to T0")
	flag.DurationVar(&o.ProvisioningDeadline, "provisioning-deadline", o.ProvisioningDeadline, "longest time from an experiment's start slot to \"every agent is ready\"")
	flag.DurationVar(&o.CleanupDeadline, "cleanup-deadline", o.CleanupDeadline, "time after which a deletion ends even if objects are left")
	flag.StringVar(&c.clusterCIDRs, "cluster-cidrs", "", "comma-separated address ranges of the cluster that experiments must not use, besides those that Kubernetes reports")
	flag.StringVar(&c.metrics, "metrics-bind-address", ":8080", "address of /metrics, for users who may get that path of the cluster; 0 for none")
	flag.StringVar(&c.probes, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.StringVar(&c.pprof, "pprof-bind-address", "", "address of /debug/pprof; none if it is empty")
	flag.BoolVar(&c.leaderElect, "leader-elect", false, "let one of several replicas work at a time")
	flag.IntVar(&c.concurrent, "concurrent-reconciles", 8, "experiments that are worked on at once")
	flag.IntVar(&c.verbosity, "v", 0, "verbosity of the log, 0 to 9")
	flag.Parse()
	return c
}

func (c *config) complete() error {
	r := &c.options.Render
	for name, image := range map[string]*string{
		"agent": &r.AgentImage, "traffic": &r.Apps.Traffic, "mosquitto": &r.Apps.Mosquitto, "mgen": &r.Apps.MGEN,
		"rabbitmq": &r.Apps.RabbitMQ, "vernemq": &r.Apps.VerneMQ, "prosody": &r.Apps.Prosody, "zeromq": &r.Apps.ZeroMQ, "wsn-cxf": &r.Apps.WSNCXF,
		"server": &r.ServerImage, "analysis": &r.AnalysisImage, "guest": &r.GuestImage, "guest-tools": &r.GuestToolsImage,
		"toolbox": &r.ToolboxImage,
	} {
		if *image != "" {
			continue
		}
		if c.registry == "" {
			return fmt.Errorf("--%s-image is empty: give it, or --image-registry", name)
		}
		*image = c.registry + "/" + name + ":" + c.tag
	}
	if c.options.StartLead < time.Second {
		return fmt.Errorf("--start-lead is %s: use 1s or more, as every agent must receive T0 before it", c.options.StartLead)
	}
	r.PullPolicy = corev1.PullPolicy(c.pullPolicy)
	for _, name := range strings.FieldsFunc(c.pullSecrets, isSeparator) {
		r.PullSecrets = append(r.PullSecrets, corev1.LocalObjectReference{Name: name})
	}
	for _, limit := range []struct {
		flag, text string
		to         *resource.Quantity
	}{{render.MemoryLimitFlag, c.memoryLimit, &r.MemoryLimit}, {"app-scratch-limit", c.scratchLimit, &r.ScratchLimit}} {
		var err error
		if *limit.to, err = resource.ParseQuantity(limit.text); err != nil || limit.to.Sign() < 0 {
			return fmt.Errorf("--%s %q: use bytes such as 2Gi, or 0 for none", limit.flag, limit.text)
		}
	}
	for _, text := range strings.FieldsFunc(c.clusterCIDRs, isSeparator) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--cluster-cidrs: %w", err)
		}
		c.options.ClusterCIDRs = append(c.options.ClusterCIDRs, prefix)
	}
	c.options.Version = version()
	return nil
}

// isSeparator reports whether a rune separates the entries of a list.
func isSeparator(r rune) bool { return r == ',' || r == ' ' }

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}

func (c *config) run() error {
	level := slog.Level(-c.verbosity)
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, nadv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// The number of parallel reconciliations limits requests, and the API server has priority and fairness. A client-side rate
	// limit would only delay large experiments.
	cluster.QPS, cluster.Burst = -1, 0
	namespace := c.options.Render.Namespace
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme: scheme, Cache: experiment.CacheOptions(namespace),
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.ConfigMap{}}}},
		Metrics: server.Options{BindAddress: c.metrics, FilterProvider: authorizeMetrics}, HealthProbeBindAddress: c.probes, PprofBindAddress: c.pprof,
		LeaderElection: c.leaderElect, LeaderElectionID: "vignette-operator", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	if err := c.register(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// authorizeMetrics restricts access to the metrics, because they are of all teams.
func authorizeMetrics(config *rest.Config, _ *http.Client) (server.Filter, error) {
	readers, err := metricreaders.New(config, slog.Default())
	if err != nil {
		return nil, err
	}
	return func(_ logr.Logger, metrics http.Handler) (http.Handler, error) { return readers.Only(metrics), nil }, nil
}

func (c *config) register(manager ctrl.Manager) error {
	token := runs.TokenSource(runs.NoToken)
	if c.tokenFile != "" {
		token = runs.TokenFile(c.tokenFile)
	}
	// One connection for each parallel reconciliation. By default Go keeps only two to a host and reopens the others.
	connections := http.DefaultTransport.(*http.Transport).Clone()
	connections.MaxIdleConnsPerHost = c.concurrent + 2
	archive := runs.New(c.options.Render.ServerURL, &http.Client{Timeout: 15 * time.Second, Transport: connections}, token)
	experiments := &experiment.Reconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Clock: clock.RealClock{}, Options: c.options,
		Recorder:   manager.GetEventRecorderFor("vignette"),
		Runs:       archive,
		Scenarios:  runs.New(c.options.Render.ServerURL, &http.Client{}, token), // without a timeout, as bodies may be large
		RunUpdates: runs.New(c.options.Render.ServerURL, &http.Client{}, token), // without a timeout, for long polls
	}
	kubernetes, err := discovery.NewDiscoveryClientForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return err
	}
	experiments.KubernetesVersion = func() (string, error) {
		version, err := kubernetes.ServerVersion()
		if err != nil {
			return "", err
		}
		return version.GitVersion, nil
	}
	kube, err := kubeclient.NewForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return err
	}
	experiments.Console = nodes.NewConsole(kube)
	if err := experiments.SetupWithManager(manager, c.concurrent); err != nil {
		return err
	}
	scenarios := &scenario.Reconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Metadata: manager.GetCache(),
		// Without a timeout, because bodies may be large and the compilation's timeout limits them.
		Store: runs.New(c.options.Render.ServerURL, &http.Client{}, token),
	}
	if err := scenarios.SetupWithManager(manager); err != nil {
		return err
	}
	campaigns := &campaign.Reconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Clock: clock.RealClock{}, Recorder: manager.GetEventRecorderFor("vignette"),
		// Without a timeout, because a comparison takes minutes and the controller limits the time of each request.
		Archive: runs.New(c.options.Render.ServerURL, &http.Client{}, token),
	}
	if err := campaigns.SetupWithManager(manager, c.concurrent); err != nil {
		return err
	}
	sweeper := &cleanup.Sweeper{Client: manager.GetClient(), Live: manager.GetAPIReader(), Namespace: c.options.Render.Namespace, Interval: time.Minute, Archive: archive}
	if err := manager.Add(sweeper); err != nil {
		return err
	}
	if err := metricsregistry.Registry.Register(&metrics.Collector{Client: manager.GetClient(), ProvisioningDeadline: experiments.ProvisioningDeadline, Elected: manager.Elected()}); err != nil {
		return err
	}
	collector := &events.Collector{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Kubernetes: kube, Archive: archive, Namespace: c.options.Render.Namespace,
	}
	if err := manager.Add(collector); err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return manager.AddReadyzCheck("ping", healthz.Ping)
}
