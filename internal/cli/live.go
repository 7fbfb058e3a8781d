package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/capacity"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// experimentFlag lets a command about a node or network name its experiment.
func (t *target) experimentFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "experiment", "e", "", "`NAME` of the experiment (default: the only one that runs in the namespace)")
	complete(cmd, "experiment", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return t.completeExperiment(cmd, nil, typed)
	})
}

// expandedExperiment is an experiment with its expanded nodes.
type expandedExperiment struct {
	*v1alpha1.Experiment
	*topology.Topology
}

// runningExperiment finds the experiment of a name, or the only one that runs, and requires that it runs.
func (c *cluster) runningExperiment(ctx context.Context, name, command string) (*expandedExperiment, error) {
	s, err := c.startedExperiment(ctx, name, command)
	if err != nil {
		return nil, err
	}
	if s.Status.Phase != v1alpha1.PhaseRunning {
		return nil, fmt.Errorf("experiment %[1]s is not running, it is %[3]s%[4]s: try again when vignette status -n %[2]s %[1]s says Running",
			s.Name, s.Namespace, stage(s.Experiment), wording.InParentheses(oneLine(s.Status.Message)))
	}
	return s, nil
}

// startedExperiment is runningExperiment that also accepts starting nodes.
func (c *cluster) startedExperiment(ctx context.Context, name, command string) (*expandedExperiment, error) {
	e, err := c.chooseExperiment(ctx, name, command)
	if err != nil {
		return nil, err
	}
	if end := outcomeOf(e); end != nil {
		return nil, fmt.Errorf("experiment %[1]s has ended, it %[3]s: start a new one with vignette run; what it left: vignette results -n %[2]s %[1]s, vignette logs -n %[2]s -e %[1]s NODE",
			e.Name, e.Namespace, strings.ToLower(string(*end)))
	}
	return expand(e)
}

func expand(e *v1alpha1.Experiment) (*expandedExperiment, error) {
	nodes, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		return nil, fmt.Errorf("experiment %s: %w", e.Name, errs.ToAggregate())
	}
	return &expandedExperiment{e, nodes}, nil
}

// chooseExperiment returns the experiment of a name, or the only one that has started and not ended; else the only queued one.
func (c *cluster) chooseExperiment(ctx context.Context, name, command string) (*v1alpha1.Experiment, error) {
	if name != "" {
		return c.experiment(ctx, name)
	}
	var experiments v1alpha1.ExperimentList
	if err := c.kube.List(ctx, &experiments, client.InNamespace(c.namespace)); err != nil {
		return nil, explain(err)
	}
	var running, waiting, others []string
	var chosen, next *v1alpha1.Experiment
	for i := range experiments.Items {
		e := &experiments.Items[i]
		switch {
		case outcomeOf(e) != nil:
			others = append(others, e.Name)
		case capacity.IsQueued(e):
			waiting, next = append(waiting, e.Name), e
		default:
			running, chosen = append(running, e.Name), e
		}
	}
	switch {
	case len(running) == 1:
		return chosen, nil
	case len(running) > 1:
		return nil, fmt.Errorf("%d experiments run in namespace %s: choose one, such as %s -e %s (one of %s)",
			len(running), c.namespace, command, running[0], listNames(running))
	case len(waiting) == 1:
		return next, nil
	case len(waiting) > 1:
		return nil, fmt.Errorf("no experiment runs in namespace %s yet, as these wait: %s; vignette status -n %[1]s shows why", c.namespace, listNames(waiting))
	case len(others) > 0:
		return nil, fmt.Errorf("no experiment runs in namespace %s: start one with vignette run FILE, or name one that has ended with -e (%s)", c.namespace, listNames(others))
	}
	return nil, fmt.Errorf("there is no experiment in namespace %s: start one with vignette run FILE, or name another namespace with -n", c.namespace)
}

// listNames of an error.
func listNames(names []string) string { return wording.Some(names, 12) }

func (s *expandedExperiment) nodeNames() (names []string) {
	for _, node := range s.Nodes {
		names = append(names, node.Name)
	}
	return names
}

func (s *expandedExperiment) networkNames() (names []string) {
	for _, network := range s.Spec.Networks {
		names = append(names, network.Name)
	}
	return names
}

// groupNames are the possible ends of links.
func (s *expandedExperiment) groupNames() (names []string) {
	for _, node := range s.Nodes {
		for _, name := range []string{node.Group, node.Template, node.Name} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// node of a name; the error lists all nodes, also those that count generates.
func (s *expandedExperiment) node(name string) (topology.Node, error) {
	node, found := s.Topology.Node(name)
	if !found {
		return node, fmt.Errorf("there is no node %s in experiment %s: want one of %s", name, s.Name, listNames(s.nodeNames()))
	}
	return node, nil
}

// network of a name.
func (s *expandedExperiment) network(name string) (v1alpha1.Network, error) {
	for _, network := range s.Spec.Networks {
		if network.Name == name {
			return network, nil
		}
	}
	return v1alpha1.Network{}, fmt.Errorf("there is no network %s in experiment %s: want one of %s", name, s.Name, listNames(s.networkNames()))
}

// containers of a node: one for each app, or the idle one.
func containers(node topology.Node) []string {
	if len(node.Apps) == 0 {
		return []string{render.IdleApp}
	}
	return node.Apps
}

// appOf checks the name of a node's app.
func (s *expandedExperiment) appOf(node topology.Node, app string) error {
	if !slices.Contains(containers(node), app) {
		return fmt.Errorf("node %s of experiment %s has no app %s: want one of %s", node.Name, s.Name, app, listNames(containers(node)))
	}
	return nil
}

// withPrefix keeps the names that begin with the typed text.
func withPrefix(typed string, names []string) (matching []string) {
	for _, name := range names {
		if strings.HasPrefix(name, typed) {
			matching = append(matching, name)
		}
	}
	return matching
}

// completeFrom completes from an experiment's names; nothing if no experiment can be chosen.
func (t *target) completeFrom(cmd *cobra.Command, name, typed string, names func(*expandedExperiment) []string) ([]string, cobra.ShellCompDirective) {
	nothing := cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := completionContext(cmd)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return nil, nothing
	}
	e, err := c.chooseExperiment(ctx, name, "")
	if err != nil {
		return nil, nothing
	}
	s, err := expand(e)
	if err != nil {
		return nil, nothing
	}
	return withPrefix(typed, names(s)), nothing
}
