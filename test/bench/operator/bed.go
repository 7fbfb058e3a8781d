package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	platform = "vignette-system"
	// podsPerHost is the most pods of a host, as the kubelet's default.
	podsPerHost = 110
)

//go:embed stages.yaml
var stages []byte

//go:embed audit.yaml
var auditPolicy []byte

// bed is a cluster with a real control plane, scheduler and operator.
type bed struct {
	options
	folder      string
	environment *envtest.Environment
	config      *rest.Config
	api         client.Client
	archive     *archive
	cluster     *cluster
	operator    *operator
	audit       *auditLog
	// processes are in the order of their start, with other cleanups.
	processes []*exec.Cmd
	stops     []func()
}

// operator is the measured process.
type operator struct {
	process        *os.Process
	metrics, pprof string
	// token is that of an account that may read the metrics.
	token string
}

// newBed returns a bed without any process.
func newBed(ctx context.Context, o options) (*bed, error) {
	folder, err := os.MkdirTemp("", "bench-operator-")
	if err != nil {
		return nil, err
	}
	b := &bed{options: o, folder: folder}
	for _, f := range []string{o.keep, o.profiles} {
		if f != "" {
			if err := os.MkdirAll(f, 0o755); err != nil {
				return nil, err
			}
		}
	}
	if b.keep == "" {
		b.keep = folder
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"build", b.build}, {"control plane", b.startControlPlane}, {"objects", b.makeObjects}, {"played parts", b.play}, {"programs", b.startPrograms},
	} {
		fmt.Fprintf(os.Stderr, "%s …\n", step.what)
		if err := step.do(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", step.what, err), b.close())
		}
	}
	return b, nil
}

func (b *bed) close() (err error) {
	for i := len(b.processes) - 1; i >= 0; i-- {
		_ = b.processes[i].Process.Signal(syscall.SIGTERM)
		patience := time.AfterFunc(10*time.Second, func() { _ = b.processes[i].Process.Kill() })
		_ = b.processes[i].Wait() // by a signal
		patience.Stop()
	}
	for _, stop := range b.stops {
		stop()
	}
	if b.environment != nil {
		err = b.environment.Stop()
	}
	return errors.Join(err, os.RemoveAll(b.folder))
}

func (b *bed) path(name string) string { return filepath.Join(b.folder, name) }

// build builds the operator and kwok, unless they exist.
func (b *bed) build(ctx context.Context) error {
	for _, program := range []struct{ name, module, path string }{{"operator", ".", "./operators/cmd/manager"}, {"kwok", "hack/kwok", "sigs.k8s.io/kwok/cmd/kwok"}} {
		if built, err := filepath.Abs(filepath.Join(b.programs, program.name)); b.programs != "" && err == nil {
			if _, err := os.Stat(built); err == nil {
				if err := os.Symlink(built, b.path(program.name)); err != nil {
					return err
				}
				continue
			}
		}
		command := exec.CommandContext(ctx, "go", "build", "-C", program.module, "-o", b.path(program.name), program.path)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program.path, err, output)
		}
	}
	return nil
}

func (b *bed) startControlPlane(context.Context) error {
	binary := testkube.Binary()
	if binary == "" {
		return errors.New(testkube.NoBinaryHint)
	}
	environment, err := testkube.Environment(binary, b.folder)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"audit.yaml": auditPolicy, "stages.yaml": stages} {
		if err := os.WriteFile(b.path(name), text, 0o600); err != nil {
			return err
		}
	}
	keep, err := filepath.Abs(b.keep)
	if err != nil {
		return err
	}
	b.audit = &auditLog{path: filepath.Join(keep, "audit.log"), calls: calls{}}
	environment.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", b.path("audit.yaml")).Set("audit-log-path", b.audit.path)
	b.config, err = environment.Start()
	if err != nil {
		return err
	}
	b.environment = environment
	b.config.QPS, b.config.Burst, b.config.UserAgent = -1, 0, "bench"
	b.api, err = client.New(b.config, client.Options{Scheme: testkube.Scheme()})
	return err
}

// makeObjects makes the objects that exist before the operator: namespaces and hosts.
func (b *bed) makeObjects(ctx context.Context) error {
	names := []string{platform}
	for i := range b.teams {
		names = append(names, team(i))
	}
	for _, name := range names {
		if err := b.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	// One host in ten is spare, so that no experiment waits for room.
	for i := range (b.experiments*b.nodes*10/9)/podsPerHost + 1 {
		if err := b.addHost(ctx, fmt.Sprintf("host-%d", i)); err != nil {
			return err
		}
	}
	return nil
}

func team(i int) string { return fmt.Sprintf("team-%d", i) }

func (b *bed) addHost(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	if err := b.api.Create(ctx, node); err != nil {
		return err
	}
	node.Status = corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500"), corev1.ResourceMemory: resource.MustParse("2Ti"),
			corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"), corev1.ResourcePods: resource.MustParse(fmt.Sprint(podsPerHost))},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.77.0.1"}},
	}
	node.Status.Capacity = node.Status.Allocatable
	status := node.Status
	if err := b.api.Status().Update(ctx, node); err != nil {
		return err
	}
	node.Status, node.Spec.Taints = status, nil // admission has set "not ready"
	return b.api.Update(ctx, node)
}

// play simulates radiod, Argo, the archive and the agents.
func (b *bed) play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	b.stops = append(b.stops, cancel)
	b.archive = newArchive()
	var err error
	if b.cluster, err = newCluster(ctx, b.config, b.api, b.archive); err != nil {
		return err
	}
	b.archive.running = b.cluster.running
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.archive.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: b.archive.handler(), ReadHeaderTimeout: time.Minute}
	b.stops = append(b.stops, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // until it is closed
	return nil
}

func (b *bed) startPrograms(ctx context.Context) error {
	if err := os.Symlink(testkube.Binary(), b.path("kube-scheduler")); err != nil {
		return err
	}
	configs := map[string]string{}
	for _, user := range []string{"vignette-operator", "kwok", "scheduler"} {
		made, err := b.environment.AddUser(envtest.User{Name: user, Groups: []string{"system:masters"}}, nil)
		if err != nil {
			return err
		}
		text, err := made.KubeConfig()
		if err != nil {
			return err
		}
		configs[user] = b.path(user + ".kubeconfig")
		if err := os.WriteFile(configs[user], text, 0o600); err != nil {
			return err
		}
	}
	if _, err := b.run("kube-scheduler", "--kubeconfig", configs["scheduler"], "--authentication-kubeconfig", configs["scheduler"], "--authorization-kubeconfig", configs["scheduler"],
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0", "--kube-api-qps=2000", "--kube-api-burst=2000"); err != nil {
		return err
	}
	if _, err := b.run("kwok", "--kubeconfig", configs["kwok"], "--config", b.path("stages.yaml"), "--v=WARN"); err != nil {
		return err
	}
	return b.startOperator(ctx, configs["vignette-operator"])
}

func (b *bed) startOperator(ctx context.Context, kubeconfig string) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	token, err := b.metricsReader(ctx)
	if err != nil {
		return err
	}
	o := &operator{metrics: ports[0], pprof: ports[1], token: token}
	args := []string{"--kubeconfig", kubeconfig, "--namespace", platform, "--server-url", b.archive.url, "--image-registry", "bench", "--metrics-bind-address", o.metrics,
		"--health-probe-bind-address", "0", "--pprof-bind-address", o.pprof}
	if o.process, err = b.run("operator", append(args, strings.Fields(b.options.operator)...)...); err != nil {
		return err
	}
	b.operator = o
	for {
		_, err := o.reconciles()
		if err == nil {
			return nil
		}
		if sleep(ctx, 200*time.Millisecond) != nil || o.memory().now == 0 {
			return fmt.Errorf("the operator does not answer: %w", err)
		}
	}
}

// metricsReader makes an account that may read metrics, and returns its token.
func (b *bed) metricsReader(ctx context.Context) (token string, err error) {
	kube, err := kubernetes.NewForConfig(b.config)
	if err != nil {
		return "", err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "metrics-reader"}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:monitoring"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}}
	for _, object := range []client.Object{account, binding} {
		if err := b.api.Create(ctx, object); err != nil {
			return "", err
		}
	}
	day := ptr.To(int64(24 * 60 * 60))
	made, err := kube.CoreV1().ServiceAccounts(platform).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: day}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.Status.Token, nil
}

// run runs a program to its end, with its output in a file.
func (b *bed) run(name string, args ...string) (*os.Process, error) {
	log, err := os.Create(filepath.Join(b.keep, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(b.path(name), args...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	b.processes = append(b.processes, command)
	return command.Process, nil
}

// freePorts returns free ports of the loopback interface. They usually stay free for a moment.
func freePorts(count int) (addresses []string, err error) {
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

// apply applies experiment i.
func (b *bed) apply(ctx context.Context, i int) error {
	return b.api.Create(ctx, liveCluster(team(i%b.teams), i, b.nodes))
}

// liveCluster returns experiment i: a broker, and all others publish to it.
func liveCluster(namespace string, i, nodes int) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name(i)}}
	e.Spec = v1alpha1.ExperimentSpec{
		Seed:     int64(i),
		Networks: []v1alpha1.Network{{Name: "wan", Link: &v1alpha1.LinkModel{Rate: ptr.To(v1alpha1.DataRate("1Mbit")), Delay: "50ms"}, Subnet: "198.18.0.0/24"}},
		Apps: []v1alpha1.App{
			{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}},
			{Name: "picture", Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTT, To: "broker", Topics: []string{"#"}}},
			{Name: "bft", Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTT, To: "broker", Payload: "nffi", Period: "10s"}},
		},
		Nodes: []v1alpha1.Node{
			{Name: "hq", Networks: []string{"wan"}, Apps: []string{"broker", "picture"}},
			{Name: "veh", Count: ptr.To(int32(nodes - 1)), Networks: []string{"wan"}, Apps: []string{"bft"}},
		},
		Timeline: []v1alpha1.TimelineEntry{{At: "5s", Start: []string{"bft"}}},
		Drain:    v1alpha1.Drain{Max: "10s", QuietFor: "1s"},
	}
	return e
}

func name(i int) string { return fmt.Sprintf("exp-%d", i) }

// stop stops experiment i early, so that it succeeds.
func (b *bed) stop(ctx context.Context, i int) error {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: team(i % b.teams), Name: name(i)}}
	return b.api.Patch(ctx, e, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stop":true}}`)))
}
