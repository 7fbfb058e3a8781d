package cluster

import (
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/radiod/podnet"
)

// dnsPort of nameservers in resolv.conf(5).
const dnsPort = 53

// agentsPort is the name of the port of the server's Service that agents use.
const agentsPort = "http"

// allowedFrom returns what pods may reach through eth0: the server's Service and the cluster's nameservers.
// Their endpoints are included, because some networks replace the Service's address before a packet leaves
// the pod. Pods of the scrapers' Services may read apps' metrics.
func allowedFrom(services []corev1.Service, slices []discoveryv1.EndpointSlice, server types.NamespacedName, scrapers []types.NamespacedName, nameservers, hosts []netip.Addr) podnet.Allowed {
	a := podnet.Allowed{Hosts: hosts, Scrapers: podAddresses(scrapers, slices)}
	for _, nameserver := range nameservers {
		a.DNS = append(a.DNS, netip.AddrPortFrom(nameserver, dnsPort))
	}
	for i := range services {
		s := &services[i]
		if s.Namespace == server.Namespace && s.Name == server.Name {
			a.Servers = append(a.Servers, addressesOf(s, slices, func(p corev1.ServicePort) bool { return p.Name == agentsPort })...)
		}
		if servesDNS(s, nameservers) {
			a.DNS = append(a.DNS, addressesOf(s, slices, func(p corev1.ServicePort) bool { return p.Port == dnsPort })...)
		}
	}
	return a.Normalise()
}

// podAddresses returns the addresses of Services' pods.
func podAddresses(services []types.NamespacedName, endpointSlices []discoveryv1.EndpointSlice) (all []netip.Addr) {
	for i := range endpointSlices {
		slice := &endpointSlices[i]
		service := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
		if !slices.Contains(services, service) {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			all = append(all, podnet.ParseAddresses(endpoint.Addresses)...)
		}
	}
	return all
}

func servesDNS(s *corev1.Service, nameservers []netip.Addr) bool {
	return slices.ContainsFunc(clusterIPs(s), func(a netip.Addr) bool { return slices.Contains(nameservers, a) })
}

func clusterIPs(s *corev1.Service) []netip.Addr {
	return podnet.ParseAddresses(append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...)) // "None" is not an address
}

// addressesOf returns the addresses and wanted ports of a Service and its endpoints.
func addressesOf(s *corev1.Service, endpointSlices []discoveryv1.EndpointSlice, wanted func(corev1.ServicePort) bool) (all []netip.AddrPort) {
	names := map[string]bool{}
	for _, port := range s.Spec.Ports {
		if !wanted(port) {
			continue
		}
		names[port.Name] = true
		for _, ip := range clusterIPs(s) {
			all = append(all, netip.AddrPortFrom(ip, uint16(port.Port)))
		}
	}
	for i := range endpointSlices {
		slice := &endpointSlices[i]
		if slice.Namespace == s.Namespace && slice.Labels[discoveryv1.LabelServiceName] == s.Name {
			all = append(all, endpointsOf(slice, names)...)
		}
	}
	return all
}

func endpointsOf(slice *discoveryv1.EndpointSlice, names map[string]bool) (all []netip.AddrPort) {
	for _, port := range slice.Ports {
		if port.Port == nil || port.Name != nil && !names[*port.Name] {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			for _, ip := range podnet.ParseAddresses(endpoint.Addresses) {
				all = append(all, netip.AddrPortFrom(ip, uint16(*port.Port)))
			}
		}
	}
	return all
}

// hostAddresses returns the addresses of the calling process's namespace, which is the Kubernetes node's own.
// Link-local addresses of IPv6 are left out: every pod's veth has one, so each pod would change the rules of
// all others. Probes do not come from them, except a gateway's, which is allowed separately.
func hostAddresses() ([]netip.Addr, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	return probeSources(addresses), nil
}

func probeSources(addresses []net.Addr) (all []netip.Addr) {
	for _, a := range addresses {
		network, ok := a.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || network.IP.To4() == nil && network.IP.IsLinkLocalUnicast() {
			continue
		}
		all = append(all, podnet.ParseAddresses([]string{network.IP.String()})...)
	}
	return all
}
