package references

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/experiment/scope"
)

// CheckSubnets finds subnets, and static routes to some, that overlap the cluster's address ranges.
func (r *Resolver) CheckSubnets(ctx context.Context, s *scope.Scope) error {
	ranges, err := r.clusterRanges(ctx)
	if err != nil {
		return err
	}
	check := func(subnet netip.Prefix, path *field.Path) {
		for _, taken := range ranges {
			if subnet.IsValid() && subnet.Overlaps(taken.prefix) {
				s.AddFinding(scope.ReasonSubnetOverlap, field.Invalid(path, subnet.String(), fmt.Sprintf("overlaps %s, %s: use a part of 198.18.0.0/15", taken.prefix, taken.what)))
				return
			}
		}
	}
	for i, network := range s.Experiment.Spec.Networks {
		path := field.NewPath("spec", "networks").Index(i)
		check(s.Topology.Subnets[network.Name], path.Child("subnet"))
		if network.Routing == nil {
			continue
		}
		for j, route := range network.Routing.Routes {
			to, _ := netip.ParsePrefix(route.To) // a node's name is none
			check(to, path.Child("routing", "routes").Index(j).Child("to"))
		}
	}
	return nil
}

// clusterRange is an address range that the cluster uses.
type clusterRange struct {
	prefix netip.Prefix
	what   string
}

// clusterRanges are the cluster's known address ranges. A subnet in one of them would cut its nodes off from the cluster,
// or reach into it.
func (r *Resolver) clusterRanges(ctx context.Context) ([]clusterRange, error) {
	var ranges []clusterRange
	for _, prefix := range r.ClusterCIDRs {
		ranges = append(ranges, clusterRange{prefix, "a range of the cluster by the operator's --cluster-cidrs"})
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		ranges = append(ranges, nodeRanges(node)...)
	}
	services, err := r.cachedServiceRanges(ctx)
	return append(ranges, services...), err
}

// serviceRangesMaxAge is how long the services' ranges are cached, because all queued experiments need them repeatedly.
const serviceRangesMaxAge = time.Minute

// serviceRangeCache holds the services' ranges.
type serviceRangeCache struct {
	mu      sync.Mutex
	ranges  []clusterRange
	askedAt time.Time
}

func (r *Resolver) cachedServiceRanges(ctx context.Context) ([]clusterRange, error) {
	r.serviceRangeCache.mu.Lock()
	defer r.serviceRangeCache.mu.Unlock()
	now := r.Clock.Now()
	if !r.serviceRangeCache.askedAt.IsZero() && now.Sub(r.serviceRangeCache.askedAt) < serviceRangesMaxAge {
		return r.serviceRangeCache.ranges, nil
	}
	ranges, err := r.serviceRanges(ctx)
	if err != nil {
		return nil, err
	}
	r.serviceRangeCache.ranges, r.serviceRangeCache.askedAt = ranges, now
	return ranges, nil
}

func nodeRanges(node corev1.Node) (ranges []clusterRange) {
	for _, cidr := range node.Spec.PodCIDRs {
		ranges = addRange(ranges, cidr, fmt.Sprintf("the pod range of node %s", node.Name))
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP || address.Type == corev1.NodeExternalIP {
			ranges = addRange(ranges, address.Address, fmt.Sprintf("the address of node %s", node.Name))
		}
	}
	return ranges
}

func addRange(ranges []clusterRange, text, what string) []clusterRange {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return append(ranges, clusterRange{prefix.Masked(), what})
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return append(ranges, clusterRange{netip.PrefixFrom(address, address.BitLen()), what})
	}
	return ranges
}

// serviceRanges come from ServiceCIDR objects (Kubernetes 1.33 and later) and the API server's own service.
func (r *Resolver) serviceRanges(ctx context.Context) (ranges []clusterRange, err error) {
	var cidrs networkingv1.ServiceCIDRList
	err = r.Live.List(ctx, &cidrs)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, err
	}
	for _, object := range cidrs.Items {
		for _, cidr := range object.Spec.CIDRs {
			ranges = addRange(ranges, cidr, "the cluster's service range")
		}
	}
	var api corev1.Service
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: "default", Name: "kubernetes"}, &api)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	for _, ip := range api.Spec.ClusterIPs {
		ranges = addRange(ranges, ip, "the API server's service address")
	}
	return ranges, nil
}
