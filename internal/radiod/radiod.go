// Package radiod is the radio emulation daemon; see images/radiod for its program.
package radiod

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/metricreaders"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/cluster"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/samples"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/internal/radiod/worker"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/wholefile"
)

// Options of the daemon, as its flags give them.
type Options struct {
	cluster.Options
	ServerURL, TokenFile, StateDirectory, Socket, MetricsAddress, Kubeconfig string
	Loops, Nice, Realtime                                                    int
	// CaptureSpoolBytes that captures may keep for the archive.
	CaptureSpoolBytes int64
	// CongestionControls of TCP that nodes may choose beside those that the host allows already.
	CongestionControls []string
	// HostIP is the address at which other hosts reach this one, at PeerPort.
	HostIP   string
	PeerPort int
}

// ParseOptions reads the flags; the environment gives some defaults.
func ParseOptions(arguments []string) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("radiod", flag.ContinueOnError)
	flags.StringVar(&o.Host, "host", os.Getenv("NODE_NAME"), "name of the Kubernetes node (default: $NODE_NAME)")
	flags.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the platform's namespace (default: $POD_NAMESPACE)")
	flags.BoolVar(&o.ClusterDNS, "cluster-dns", false, "let nodes ask the cluster's DNS")
	flags.StringVar(&o.DNSNamespace, "dns-namespace", "kube-system", "namespace of the cluster's DNS Service")
	flags.StringVar(&o.ServerService, "server-service", "vignette-server", "name of the server's Service")
	flags.StringVar(&o.ServerURL, "server-url", "", "URL of the server (default: http://SERVER-SERVICE.NAMESPACE.svc)")
	flags.StringVar(&o.TokenFile, "token-file", "", "token that the server accepts; without it no samples are shipped")
	flags.StringVar(&o.StateDirectory, "state-dir", "/run/vignette", "folder of the host for state that outlives the container, best on a tmpfs")
	flags.StringVar(&o.Socket, "socket", wire.DefaultSocket, "socket for the CNI plugin")
	flags.StringVar(&o.MetricsAddress, "metrics-address", ":9600", "address of /metrics, /healthz and /readyz")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "for use outside a cluster")
	flags.StringVar(&o.ResolvConf, "resolv-conf", "/etc/resolv.conf", "file with the cluster's nameservers")
	flags.StringVar(&o.HostIP, "host-ip", os.Getenv("HOST_IP"), "address at which the other hosts reach this one; without it networks end at this host (default: $HOST_IP)")
	flags.IntVar(&o.PeerPort, "peer-port", 9601, "UDP port for the other hosts' radiods")
	flags.IntVar(&o.Loops, "loops", 0, "event loops of the radio engine (default: one for two processors)")
	flags.IntVar(&o.Nice, "nice", driver.DefaultNice, "scheduling priority of the process, -20 to 19")
	flags.IntVar(&o.Realtime, "realtime", 0, "priority 1 to 99 of the event loops under SCHED_FIFO; 0 for the normal scheduler")
	scrapers := flags.String("app-metrics-readers", "", "comma-separated NAMESPACE/SERVICE whose pods may read the metrics of nodes' apps; none by default")
	spool := flags.String("capture-spool", "512Mi", "bytes of captures that may wait for the archive in the state folder; frames without room are dropped and counted")
	controls := flags.String("tcp-congestion-controls", "", "comma-separated TCP congestion controls that nodes may choose, beside those that the host allows already")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	room, err := resource.ParseQuantity(*spool)
	if err != nil || room.Sign() < 0 {
		return o, fmt.Errorf("--capture-spool %q: want bytes such as 512Mi", *spool)
	}
	o.CaptureSpoolBytes = room.Value()
	isComma := func(r rune) bool { return r == ',' }
	o.CongestionControls = strings.FieldsFunc(*controls, isComma)
	for _, text := range strings.FieldsFunc(*scrapers, isComma) {
		namespace, name, found := strings.Cut(text, "/")
		if !found || namespace == "" || name == "" {
			return o, fmt.Errorf("--app-metrics-readers %q: want NAMESPACE/SERVICE, such as monitoring/prometheus-operated", text)
		}
		o.Scrapers = append(o.Scrapers, types.NamespacedName{Namespace: namespace, Name: name})
	}
	if o.ServerURL == "" {
		o.ServerURL = fmt.Sprintf("http://%s.%s.svc", o.ServerService, o.Namespace)
	}
	if o.Loops <= 0 {
		o.Loops = max(1, runtime.NumCPU()/2)
	}
	return o, o.check(flags.Args())
}

func (o *Options) check(rest []string) error {
	var err error
	if len(rest) > 0 {
		err = fmt.Errorf("%q: want flags only", rest)
	}
	if o.Host == "" {
		err = errors.Join(err, errors.New("--host: want the Kubernetes node's name, or NODE_NAME in the environment"))
	}
	if o.Namespace == "" {
		err = errors.Join(err, errors.New("--namespace: want the platform's namespace, or POD_NAMESPACE in the environment"))
	}
	for _, number := range []struct {
		flag               string
		value, least, most int
	}{{"--peer-port", o.PeerPort, 1, 65535}, {"--nice", o.Nice, -20, 19}, {"--realtime", o.Realtime, 0, 99}} {
		if number.value < number.least || number.value > number.most {
			err = errors.Join(err, fmt.Errorf("%s %d: want %d to %d", number.flag, number.value, number.least, number.most))
		}
	}
	return err
}

// RunWorker takes over from the parent at descriptor holder.ParentSocket, and uses the data plane at holder.PlaneSocket. It
// works until ctx ends or something fails that needs a new worker.
func RunWorker(ctx context.Context, log *slog.Logger, arguments []string) error {
	o, err := ParseOptions(arguments)
	if err != nil {
		return err
	}
	parent, err := holder.Conn(os.NewFile(holder.ParentSocket, "parent"))
	if err != nil {
		return fmt.Errorf("only radiod starts workers: %w", err)
	}
	keeper, held, err := holder.Connect(parent)
	if err != nil {
		return err
	}
	key, err := hostKey(filepath.Join(o.StateDirectory, "peer-key"))
	if err != nil {
		return err
	}
	plane, err := connectPlane(&o, key)
	if err != nil {
		return fmt.Errorf("data plane: %w", err)
	}
	ctx, orphaned := context.WithCancelCause(ctx)
	defer orphaned(nil)
	go func() { // the data plane ends with the parent
		<-plane.Ended()
		orphaned(errors.New("the data plane has gone"))
	}()
	raisePriority(log, &o)
	if err := podnet.RaiseNeighbourLimits(); err != nil {
		log.Warn("the nodes of large networks may forget each other's MAC addresses: raise gc_thresh1, gc_thresh2 and gc_thresh3 of net.ipv4.neigh.default on the machine", "error", err)
	}
	config, err := clusterConfig(o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	controllerlog.SetLogger(logr.FromSlogHandler(log.Handler()))
	return serve(ctx, log, o, plane, key.Public(), keeper, held, config)
}

func connectPlane(o *Options, key peers.PrivateKey) (*dataplane.Client, error) {
	conn, err := holder.Conn(os.NewFile(holder.PlaneSocket, "data plane"))
	if err != nil {
		return nil, err
	}
	process := dataplane.ProcessOptions{Driver: driver.Options{Loops: o.Loops, Nice: o.Nice, Realtime: o.Realtime}, StateDirectory: o.StateDirectory, Host: o.Host, Key: key.Bytes()}
	if o.HostIP != "" {
		process.Listen = ":" + strconv.Itoa(o.PeerPort)
	}
	return dataplane.Connect(conn, process)
}

// minPs of Go's scheduler: for the routers' thread, the writer of routes, samples, and a garbage collection. A thread in the
// kernel keeps its P for a while.
const minPs = 4

// raisePriority gives the worker its priority. The loops of the data plane have a better one.
func raisePriority(log *slog.Logger, o *Options) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), minPs))
	if err := driver.RaiseProcessPriority(driver.Options{Nice: o.Nice}); err != nil {
		log.Warn("radiod's worker runs with a lower priority than configured, so nodes may be routed late", "nice", o.Nice, "error", err)
	}
}

func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// serve runs all parts until one fails or ctx ends.
func serve(ctx context.Context, log *slog.Logger, o Options, plane *dataplane.Client, key peers.Key, keeper *holder.Client, held map[string]int, config *rest.Config) error {
	var api atomic.Pointer[cluster.Cluster]
	sampler := &samples.Sampler{Host: o.Host, Directory: filepath.Join(o.StateDirectory, "spool"), Log: log}
	if err := sampler.Open(); err != nil {
		return err
	}
	archive := archiveClient(o)
	captures, err := openCaptures(o, log, archive)
	if err != nil {
		return err
	}
	options := worker.Options{Host: o.Host, StateDirectory: o.StateDirectory, Plane: plane, Loops: o.Loops, Keeper: keeper,
		Finder: netns.Finder{}, CongestionControls: o.CongestionControls, Log: log, Recorder: sampler, Captures: captures, Changed: cluster.ChangedBy(&api)}
	if archive != nil {
		options.Scenarios = archive
	}
	manager, err := worker.NewManager(options)
	if err != nil {
		return err
	}
	sampler.Source, sampler.Captures = manager, captures
	hosts := newHosts(&o, log, plane, key, manager, sampler)
	// First, because the nodes' radios have not worked since the last data plane ended.
	if err := manager.Restore(held); err != nil {
		log.Error("restore attachments", "error", err)
	}
	o.Log = log
	c, err := cluster.New(config, o.Options)
	if err != nil {
		return err
	}
	api.Store(c)
	readers, err := metricreaders.New(config, log)
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	if archive != nil {
		sampler.Archive = archive
	}
	var ready atomic.Bool
	parts, ctx := errgroup.WithContext(ctx)
	loops := newHealth()
	go loops.watch(ctx, plane.AwaitLoops) // may never return
	parts.Go(func() error { return manager.WriteHeartbeat(ctx) })
	parts.Go(func() error { return manager.FetchScenarios(ctx) })
	parts.Go(func() error { return manager.Routers.Run(ctx) })
	parts.Go(func() error { return manager.Queues.Run(ctx) })
	parts.Go(func() error {
		return c.Run(ctx, manager, func() {
			if err := plane.DropLeft(); err != nil { // all objects have been read
				log.Error("end what an earlier worker left to the data plane", "error", err)
			}
			ready.Store(true)
		})
	})
	parts.Go(func() error { return wire.Listen(ctx, o.Socket, manager.Serve, log) })
	parts.Go(func() error { return sampler.Run(ctx) })
	parts.Go(func() error { return captures.Run(ctx) })
	collect := append(manager.Collectors(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{PidFn: plane.Process, Namespace: "vignette_plane"}))
	if hosts != nil {
		collect = append(collect, hosts)
		parts.Go(func() error { return hosts.Run(ctx, sampler) })
	}
	parts.Go(func() error { return serveMetrics(ctx, o.MetricsAddress, readers, collect, loops, &ready) })
	parts.Go(func() error { return sweep(ctx, log, manager, &ready) })
	if err := parts.Wait(); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// archiveClient returns the archive's client, or nil without a token for it.
func archiveClient(o Options) *client.Client {
	if o.TokenFile == "" {
		return nil
	}
	direct := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}}
	return client.New(o.ServerURL, direct, client.TokenFile(o.TokenFile))
}

func openCaptures(o Options, log *slog.Logger, archive *client.Client) (*capture.Recorder, error) {
	options := capture.Options{Directory: filepath.Join(o.StateDirectory, "captures"), SpoolBytes: o.CaptureSpoolBytes, Host: o.Host,
		EpochOffset: clock.EpochOffset, Log: log}
	if archive != nil {
		options.Archive = archive
	}
	return capture.Open(options)
}

const (
	sweepInterval  = 5 * time.Second
	orphanInterval = time.Minute
	retryInterval  = 100 * time.Millisecond
)

func sweep(ctx context.Context, log *slog.Logger, manager *worker.Manager, ready *atomic.Bool) error {
	again, pinned, orphaned := time.NewTicker(retryInterval), time.NewTicker(sweepInterval), time.NewTicker(orphanInterval)
	defer again.Stop()
	defer pinned.Stop()
	defer orphaned.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-again.C:
			manager.Retry(now)
		case <-pinned.C:
			if err := manager.RemovePinned(); err != nil {
				log.Error("release namespaces of deleted pods", "error", err)
			}
		case <-orphaned.C:
			if !ready.Load() {
				continue
			}
			if err := manager.RemoveOrphans(); err != nil {
				log.Error("remove orphans", "error", err)
			}
		}
	}
}

func serveMetrics(ctx context.Context, address string, readers *metricreaders.Readers, collect []prometheus.Collector, loops *health, ready *atomic.Bool) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(collect, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))...)
	mux := http.NewServeMux()
	mux.Handle(metricreaders.Path, readers.Only(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := loops.check(time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "not all objects of the API server are read yet", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics at %s: %w", address, err)
	}
	return nil
}

// InstallPlugin copies the CNI plugin into a folder in one step, so that a runtime never starts an incomplete
// one.
func InstallPlugin(from, directory string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("CNI plugin: %w", err)
	}
	if err := wholefile.Write(filepath.Join(directory, "radio"), program, 0o755); err != nil {
		return fmt.Errorf("CNI plugin: %w", err)
	}
	return nil
}
