package render

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIsolatedNodesResolveTheServerWithoutTheClustersNameserver(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*Input)
		node, want string
	}{
		"isolated":               {func(*Input) {}, "nor", "None [127.0.0.1] vignette-server.vignette-system.svc 10.96.0.20"},
		"open":                   {func(*Input) {}, "observer", " []"},
		"with the cluster's":     {func(in *Input) { in.Options.ClusterDNS = true }, "nor", " []"},
		"a server by an address": {func(in *Input) { in.Options.ServerURL, in.ServerAddress = "http://[fd00::1]:80", "" }, "nor", "None [127.0.0.1]"},
	} {
		t.Run(name, func(t *testing.T) {
			in := quickstart(t)
			c.change(&in)
			for _, pod := range Pods(in) {
				if pod.Spec.Hostname != c.node {
					continue
				}
				config := pod.Spec.DNSConfig
				if config == nil {
					config = &corev1.PodDNSConfig{}
				}
				got := fmt.Sprint(pod.Spec.DNSPolicy, " ", config.Nameservers)
				for _, alias := range pod.Spec.HostAliases {
					if len(alias.Hostnames[0]) > 10 {
						got += fmt.Sprint(" ", alias.Hostnames[0], " ", alias.IP)
					}
				}
				if got != c.want {
					t.Errorf("%s has %q; want %q", c.node, got, c.want)
				}
			}
		})
	}
}
