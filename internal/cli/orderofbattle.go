package cli

import (
	"fmt"
	"io"
	"strings"

	"vignette.dev/vignette/internal/orderofbattle"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// writeOrderOfBattle writes who commands whom, and who is on which network.
func writeOrderOfBattle(out io.Writer, order *orderofbattle.Order) {
	if len(order.Units) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%-24s%10s%11s  %s\n", "unit", "commander", "platforms", "own")
	order.Walk(func(unit *orderofbattle.Unit, depth int) {
		name := strings.Repeat("  ", depth) + unit.Name
		fmt.Fprintf(out, "%-24s%10d%11d  %s\n", name, unit.Commander, len(unit.All()), noneIfEmpty(v1alpha1.PlatformRanges(unit.Platforms)))
	})
	if len(order.Networks) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%-14s%9s  %s\n", "network", "platforms", "gateways to other networks")
	for _, network := range order.Networks {
		fmt.Fprintf(out, "%-14s%9d  %s\n", network.Name, len(network.Members), noneIfEmpty(gateways(order, network)))
	}
}

func noneIfEmpty(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// gateways lists the members that are on further networks, with these.
func gateways(order *orderofbattle.Order, network orderofbattle.Network) string {
	var all []string
	for _, platform := range network.Members {
		var others []string
		for _, name := range order.NetworksOf(platform) {
			if name != network.Name {
				others = append(others, name)
			}
		}
		if len(others) > 0 {
			all = append(all, fmt.Sprintf("%d (%s)", platform, strings.Join(others, " ")))
		}
	}
	return strings.Join(all, ", ")
}
