package cluster

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/radiod/podnet"
)

func TestAllowedFollowsServicesAndEndpoints(t *testing.T) {
	port := func(name string, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number}
	}
	service := func(namespace, name, ip string, ports ...corev1.ServicePort) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Ports: ports}}
	}
	slice := func(namespace, service, portName string, number int32, addresses ...string) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &number}}, Endpoints: []discoveryv1.Endpoint{{Addresses: addresses}}}
	}
	services := []corev1.Service{service("platform", "server", "10.96.0.20", port("http", 80), port("https", 443)), service("platform", "other", "10.96.0.30", port("http", 80)),
		service("kube-system", "dns", "10.96.0.10", port("dns", 53), port("metrics", 9153)), service("kube-system", "headless", "None", port("http", 80))}
	slices := []discoveryv1.EndpointSlice{slice("platform", "server", "http", 8080, "10.1.0.9"), slice("platform", "server", "https", 8443, "10.1.0.9"), slice("kube-system", "server", "http", 8081, "10.1.0.10"),
		slice("kube-system", "dns", "dns", 5353, "10.1.0.5"), slice("kube-system", "dns", "metrics", 9153, "10.1.0.5"),
		slice("monitoring", "prometheus", "web", 9090, "10.1.0.20", "10.1.0.21"), slice("team-nor", "prometheus", "web", 9090, "10.1.0.66")}
	nameservers := podnet.NameServers(strings.NewReader("search a b\nnameserver 10.96.0.10 # cluster\nnameserver 169.254.20.10\nnameserver nonsense\n"))
	got := allowedFrom(services, slices, types.NamespacedName{Namespace: "platform", Name: "server"},
		[]types.NamespacedName{{Namespace: "monitoring", Name: "prometheus"}}, nameservers, []netip.Addr{netip.MustParseAddr("192.0.2.1")})
	if want := "[10.1.0.9:8080 10.96.0.20:80]"; sprint(got.Servers) != want {
		t.Errorf("servers %v; want %s", got.Servers, want)
	}
	if want := "[10.1.0.5:5353 10.96.0.10:53 169.254.20.10:53]"; sprint(got.DNS) != want {
		t.Errorf("DNS %v; want %s", got.DNS, want)
	}
	if want := "[10.1.0.20 10.1.0.21]"; fmt.Sprint(got.Scrapers) != want {
		t.Errorf("readers of apps' metrics %v; want %s", got.Scrapers, want)
	}
}

func sprint(addresses []netip.AddrPort) string {
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	return "[" + strings.Join(texts, " ") + "]"
}

func TestTheHostProbesFromItsOwnAddressesAndNotFromThoseOfPodsVeths(t *testing.T) {
	var addresses []net.Addr
	for _, text := range []string{"127.0.0.1/8", "::1/128", "192.0.2.1/24", "2001:db8::1/64", "fe80::a8bb:ccff:fedd:eeff/64"} {
		ip, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		network.IP = ip
		addresses = append(addresses, network)
	}
	got := probeSources(addresses)
	if want := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}
