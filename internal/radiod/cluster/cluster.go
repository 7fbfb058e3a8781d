// Package cluster synchronises a host's radios with the API server: RadioNetworks and what pods may reach from it, the
// host's status to it.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/samples"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Host takes what the API server has, and tells what of it works here.
type Host interface {
	SetNetwork(*v1alpha1.RadioNetwork) error
	RemoveNetwork(uid string) error
	// RemoveFormerMembers removes attachments that no RadioNetwork lists any more.
	RemoveFormerMembers() error
	// Prune removes networks that do not exist any more.
	Prune(existing map[string]bool) error
	// SetAllowed changes what all pods may reach through eth0.
	SetAllowed(podnet.Allowed) error
	// HostStatus of a network on this host; known is false if there is no such network.
	HostStatus(uid string) (status Status, known bool)
}

// Options of a Cluster.
type Options struct {
	// Host is the Kubernetes node's name.
	Host string
	// Namespace of the platform, where RadioNetworks and the server are.
	Namespace string
	// ClusterDNS lets isolated nodes ask the cluster's DNS.
	ClusterDNS bool
	// DNSNamespace is where the cluster's DNS Service is.
	DNSNamespace string
	// Scrapers are the Services whose pods may read the metrics of nodes' apps.
	Scrapers []types.NamespacedName
	// ServerService is the name of the server's Service.
	ServerService string
	// ResolvConf has the cluster's nameservers.
	ResolvConf string
	Log        *slog.Logger
}

// Cluster synchronises a Host and the API server.
type Cluster struct {
	Options
	radios Host
	client client.Client
	cache  cache.Cache
	reader client.Reader // of the cache
	// cpuModel of the host.
	cpuModel string

	mu      sync.Mutex
	changed map[types.NamespacedName]string // RadioNetworks whose status may have to be written, with their UIDs
	wake    bell.Bell
	refresh bell.Bell
	written map[string]Status // by UID: this host's entries at the API server
}

// Status is this host's entry in a RadioNetwork's status.
type Status struct {
	Attached int
	Message  string
	// Refused is what of the network's spec this host cannot apply; empty for nothing.
	Refused string
	// NEMs are the attached members' NEM ids, as text; Peer is how other hosts reach this one.
	NEMs string
	Peer v1alpha1.RadioPeer
	// CongestionControl of TCP in attached members' pods; empty if none is attached, or all are guests, which have
	// their own kernels.
	CongestionControl string
}

// New connects to the API server's caches; Run starts them.
func New(config *rest.Config, options Options) (*Cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := staticMapper()
	k8s, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	own := map[string]cache.Config{options.Namespace: {}}
	watched := map[string]cache.Config{options.Namespace: {}}
	if options.ClusterDNS {
		watched[options.DNSNamespace] = cache.Config{}
	}
	for _, scraper := range options.Scrapers {
		watched[scraper.Namespace] = cache.Config{}
	}
	caches, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, ByObject: map[client.Object]cache.ByObject{
		&v1alpha1.RadioNetwork{}:     {Namespaces: own},
		&corev1.Service{}:            {Namespaces: watched},
		&discoveryv1.EndpointSlice{}: {Namespaces: watched},
	}})
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	return &Cluster{Options: options, client: k8s, cache: caches, reader: caches, changed: map[types.NamespacedName]string{},
		wake: bell.New(), refresh: bell.New(), written: map[string]Status{}, cpuModel: samples.CPUModel(samples.ProcDirectory)}, nil
}

// staticMapper knows the few kinds in use. Asking the API server would keep a new worker from starting while
// it is away.
func staticMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("RadioNetwork"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
		// The cache of several namespaces also asks for the scope of the list's kind.
		mapper.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), meta.RESTScopeNamespace)
	}
	return mapper
}

// Changed marks a network's status to be written; for the Host to call.
func (c *Cluster) Changed(n *v1alpha1.RadioNetwork) {
	c.mu.Lock()
	c.changed[types.NamespacedName{Namespace: n.Namespace, Name: n.Name}] = string(n.UID)
	c.mu.Unlock()
	c.wake.Ring()
}

// Run follows the API server until ctx ends. synced is called once all objects are read.
func (c *Cluster) Run(ctx context.Context, radios Host, synced func()) error {
	c.radios = radios
	var wait sync.WaitGroup
	defer wait.Wait()
	if err := c.watch(ctx); err != nil {
		return err
	}
	wait.Go(func() {
		if !c.cache.WaitForCacheSync(ctx) {
			return
		}
		c.prune(ctx)
		c.renewAllowed(ctx)
		synced()
		wait.Go(func() { c.writeStatuses(ctx) })
		c.renewAllowedOnChange(ctx)
	})
	return c.cache.Start(ctx)
}

func (c *Cluster) watch(ctx context.Context) error {
	networks, err := c.cache.GetInformer(ctx, &v1alpha1.RadioNetwork{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch RadioNetworks: %w", err)
	}
	_, err = networks.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.set(object) },
		UpdateFunc: c.update,
		DeleteFunc: c.remove,
	})
	if err != nil {
		return fmt.Errorf("watch RadioNetworks: %w", err)
	}
	for _, object := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}} {
		informer, err := c.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		again := func(any) { c.refresh.Ring() }
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: again,
			UpdateFunc: func(_, object any) { again(object) }, DeleteFunc: again})
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

func (c *Cluster) set(object any) {
	n, ok := object.(*v1alpha1.RadioNetwork)
	if !ok {
		return
	}
	if err := c.radios.SetNetwork(n); err != nil {
		c.Log.Error("apply a RadioNetwork", "name", n.Name, "error", err)
	}
	if err := c.radios.RemoveFormerMembers(); err != nil {
		c.Log.Error("remove former members", "name", n.Name, "error", err)
	}
	c.Changed(n)
}

// update takes a changed network, or another one that has the name of a deleted one.
func (c *Cluster) update(before, object any) {
	was, known := before.(*v1alpha1.RadioNetwork)
	if is, ok := object.(*v1alpha1.RadioNetwork); known && ok && was.UID != is.UID {
		c.remove(was)
	}
	c.set(object)
}

func (c *Cluster) remove(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	n, ok := object.(*v1alpha1.RadioNetwork)
	if !ok {
		return
	}
	if err := c.radios.RemoveNetwork(string(n.UID)); err != nil {
		c.Log.Error("remove a RadioNetwork", "name", n.Name, "error", err)
	}
	c.mu.Lock()
	delete(c.written, string(n.UID))
	c.mu.Unlock()
}

// prune removes networks that were deleted while no worker ran.
func (c *Cluster) prune(ctx context.Context) {
	var list v1alpha1.RadioNetworkList
	if err := c.reader.List(ctx, &list); err != nil {
		c.Log.Error("list RadioNetworks", "error", err)
		return
	}
	existing := map[string]bool{}
	for i := range list.Items {
		existing[string(list.Items[i].UID)] = true
	}
	if err := c.radios.Prune(existing); err != nil {
		c.Log.Error("remove networks and attachments without a RadioNetwork", "error", err)
	}
}

const (
	coalesceInterval = 250 * time.Millisecond
	// hostInterval after which the host's own addresses are read again; their changes are not reported.
	hostInterval = 30 * time.Second
)

func (c *Cluster) renewAllowedOnChange(ctx context.Context) {
	ticker := time.NewTicker(hostInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.refresh:
			clock.Pause(ctx, coalesceInterval)
		case <-ticker.C:
		}
		c.renewAllowed(ctx)
	}
}

func (c *Cluster) renewAllowed(ctx context.Context) {
	if err := c.tryRenewAllowed(ctx); err != nil {
		c.Log.Error("renew the rules for eth0", "error", err)
	}
}

func (c *Cluster) tryRenewAllowed(ctx context.Context) error {
	var services corev1.ServiceList
	if err := c.reader.List(ctx, &services); err != nil {
		return err
	}
	var slices discoveryv1.EndpointSliceList
	if err := c.reader.List(ctx, &slices); err != nil {
		return err
	}
	nameservers, err := c.nameservers()
	if err != nil {
		return fmt.Errorf("nameservers: %w", err)
	}
	hosts, err := hostAddresses()
	if err != nil {
		return fmt.Errorf("addresses of the host: %w", err)
	}
	server := types.NamespacedName{Namespace: c.Namespace, Name: c.ServerService}
	return c.radios.SetAllowed(allowedFrom(services.Items, slices.Items, server, c.Scrapers, nameservers, hosts))
}

// nameservers that nodes may query.
func (c *Cluster) nameservers() ([]netip.Addr, error) {
	if !c.ClusterDNS {
		return nil, nil
	}
	file, err := os.Open(c.ResolvConf)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return podnet.NameServers(file), nil
}

// writeStatuses writes this host's entries when they change, many changes at once.
func (c *Cluster) writeStatuses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.mu.Lock()
		changed := c.changed
		c.changed = map[types.NamespacedName]string{}
		c.mu.Unlock()
		for name, uid := range changed {
			if err := c.writeStatus(ctx, name, uid); err != nil {
				c.Log.Warn("write a RadioNetwork's status", "name", name.Name, "error", err)
				c.mu.Lock()
				if _, again := c.changed[name]; !again { // another object may have the name now
					c.changed[name] = uid
				}
				c.mu.Unlock()
				time.AfterFunc(time.Second, func() { c.wake.Ring() })
			}
		}
		clock.Pause(ctx, coalesceInterval)
	}
}

func (c *Cluster) writeStatus(ctx context.Context, name types.NamespacedName, uid string) error {
	status, known := c.radios.HostStatus(uid)
	if !known {
		return nil
	}
	c.mu.Lock()
	written, was := c.written[uid]
	c.mu.Unlock()
	if was && written == status || !was && status == (Status{}) && !c.hasStatusEntry(ctx, name) {
		return nil
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RadioNetwork",
		// The UID makes the write fail if another network has taken the name.
		"metadata": map[string]any{"namespace": name.Namespace, "name": name.Name, "uid": uid},
		"status":   map[string]any{"hosts": []any{hostEntry(c.Host, c.cpuModel, status)}},
	}}
	err := c.client.Status().Patch(ctx, object, client.Apply, client.FieldOwner("radiod-"+c.Host), client.ForceOwnership) //nolint:staticcheck // typed apply configurations are not generated
	if apierrors.IsNotFound(err) {
		return nil // the network is gone
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.written[uid] = status
	c.mu.Unlock()
	return nil
}

// hasStatusEntry reports whether the API server has an entry of this host, left by an earlier worker.
func (c *Cluster) hasStatusEntry(ctx context.Context, name types.NamespacedName) bool {
	var n v1alpha1.RadioNetwork
	if err := c.reader.Get(ctx, name, &n); err != nil {
		return false
	}
	return slices.ContainsFunc(n.Status.Hosts, func(h v1alpha1.RadioNetworkHost) bool { return h.Host == c.Host })
}

func hostEntry(host, cpuModel string, s Status) map[string]any {
	entry := map[string]any{"host": host, "attached": int64(s.Attached)}
	if cpuModel != "" {
		entry["cpuModel"] = cpuModel
	}
	if s.NEMs != "" {
		var nems []any
		for _, nem := range strings.Fields(s.NEMs) {
			n, _ := strconv.ParseInt(nem, 10, 64) // as it was written
			nems = append(nems, n)
		}
		entry["nems"] = nems
	}
	if s.CongestionControl != "" {
		entry["tcpCongestionControl"] = s.CongestionControl
	}
	if s.Peer.Key != "" {
		entry["peer"] = map[string]any{"address": s.Peer.Address, "key": s.Peer.Key}
	}
	for field, text := range map[string]string{"message": s.Message, "refused": s.Refused} {
		if text != "" {
			entry[field] = text
		}
	}
	return entry
}

// ChangedBy returns a Cluster's Changed before the Cluster is made.
func ChangedBy(cluster *atomic.Pointer[Cluster]) func(*v1alpha1.RadioNetwork) {
	return func(n *v1alpha1.RadioNetwork) {
		if c := cluster.Load(); c != nil {
			c.Changed(n)
		}
	}
}
