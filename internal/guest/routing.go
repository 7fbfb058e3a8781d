package guest

import (
	"fmt"
	"os"
	"slices"

	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// startRouting starts the networks' routing daemons, as radiod does for pods. Static routes were set with the radios.
func (g *guest) startRouting(radios []radioLink) (closeAll func(), err error) {
	domains := domainsOf(radios)
	if len(domains) == 0 {
		return func() {}, nil
	}
	host, err := routing.NewHost(g.log)
	if err != nil {
		return nil, err
	}
	namespace, err := os.Open(netNamespace)
	if err != nil {
		return nil, err
	}
	var instances []*routing.Instance
	closeAll = func() {
		for _, i := range instances {
			_ = i.Stop() // the machine ends anyway
		}
		_ = host.Close()
		_ = namespace.Close()
	}
	for _, config := range domains {
		instance, err := host.Start(namespace, config)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("routing by %s: %w", config.Protocol, err)
		}
		g.log.Info("routing", "protocol", string(config.Protocol), "interfaces", len(config.Interfaces))
		instances = append(instances, instance)
	}
	return closeAll, nil
}

// domainsOf returns one domain for each protocol. HELLOs and TCs have each network's times. A router has one metric: that of
// the node's first network that routes so.
func domainsOf(radios []radioLink) (domains []routing.Config) {
	for _, r := range radios {
		if !r.Routing.SetsRoutes() || r.Routing.Protocol == v1alpha1.RoutingStatic {
			continue
		}
		i := slices.IndexFunc(domains, func(c routing.Config) bool { return c.Protocol == r.Routing.Protocol })
		if i < 0 {
			i = len(domains)
			domains = append(domains, routing.ConfigOf(r.Routing, r.Seed))
		}
		n := routing.Interface{Name: r.Name, Index: r.index, Address: prefixOf(r.Address), MTU: r.MTU, RateBitsPerSecond: r.RateBitsPerSecond}
		domains[i].Add(n, r.Routing)
	}
	return domains
}
