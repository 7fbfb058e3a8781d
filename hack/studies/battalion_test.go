package main

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestTheBattalionsNodesAreOnTheNetworksOfItsOrderOfBattle(t *testing.T) {
	for _, f := range []form{{false}, {true}} {
		var e v1alpha1.Experiment
		if err := yaml.UnmarshalStrict([]byte(last(runs()[battalion{f}.path()])), &e); err != nil {
			t.Fatal(err)
		}
		expanded, errs := topology.Expand(&e.Spec)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if want := choose(f.Short, 49, 243); len(expanded.Nodes) != want {
			t.Errorf("%d nodes; want %d", len(expanded.Nodes), want)
		}
		for _, node := range expanded.Nodes {
			var got []string
			for _, attachment := range node.Attachments {
				got = append(got, attachment.Network)
			}
			want := battalionOrder.NetworksOf(int(node.NEM))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("node %s of platform %s is on %v; want %v", node.Name, node.Platform, got, want)
			}
		}
	}
}
