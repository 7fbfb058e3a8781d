package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// refreshInterval of the live view.
const refreshInterval = time.Second

// watch follows an experiment to its end. It polls once a second: a watch would save little, as elapsed time and message counts change
// every second.
func (c *cluster) watch(ctx context.Context, followed *v1alpha1.Experiment, view *view) error {
	key := client.ObjectKeyFromObject(followed)
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	patience, refusal := patience{seen: true}, refusal(0) // it was just created or read
	for {
		e := &v1alpha1.Experiment{}
		err := c.kube.Get(ctx, key, e)
		switch {
		case ctx.Err() != nil:
			return detach(view, key)
		case apierrors.IsNotFound(err) || err == nil && e.UID != followed.UID:
			view.close()
			return fmt.Errorf("experiment %s was deleted while it ran; what was measured: vignette results -n %s %s --uid %s",
				key.Name, key.Namespace, key.Name, followed.UID)
		case patience.ends(err):
			view.close()
			return explain(err)
		case err == nil:
			view.show(e, c.counters(ctx, e), time.Now())
			if end := outcomeOf(e); end != nil {
				return end.report(view, e)
			}
			if refusal.stands(e.Status.Conditions) {
				view.close()
				view.print(refusedText("experiment", "vignette status", e, e.Status.Conditions))
				return exit(exitFailure)
			}
			if hasNoDuration(e) && isUp(e, time.Now()) {
				return reportUp(view, e)
			}
		default:
			view.note(fmt.Sprintf("cannot reach the cluster, retrying: %v", err))
		}
		select {
		case <-ctx.Done():
			return detach(view, key)
		case <-ticker.C:
		}
	}
}

// isUp reports whether T0 has passed: apps run, and the networks can be changed.
func isUp(e *v1alpha1.Experiment, now time.Time) bool {
	return e.Status.Phase == v1alpha1.PhaseRunning && e.Status.T0 != nil && !now.Before(e.Status.T0.Time)
}

// reportUp ends the watching of a live cluster, which has no end.
func reportUp(view *view, e *v1alpha1.Experiment) error {
	view.close()
	node, network := e.Spec.Nodes[0].Name, "NETWORK"
	if e.Spec.Nodes[0].Count != nil {
		node += "-1"
	}
	if networks := e.Spec.Nodes[0].Networks; len(networks) > 0 {
		network = networks[0]
	}
	where := fmt.Sprintf("-n %s -e %s", e.Namespace, e.Name)
	view.print(e.Name + " is up, and stays so until it is stopped. From here:")
	view.print(table{
		left("  a shell on a node", fmt.Sprintf("vignette shell %s %s", where, node)),
		left("  what its apps write", fmt.Sprintf("vignette logs %s %s -f", where, node)),
		left("  frames at its radio", fmt.Sprintf("vignette capture %s %s %s -w - | wireshark -k -i -", where, node, network)),
		left("  change a network", fmt.Sprintf("vignette set %s %s delay=200ms", where, network)),
		left("  end it, with results", fmt.Sprintf("vignette stop -n %s %s", e.Namespace, e.Name)),
	}.String())
	return nil
}

func detach(view *view, key client.ObjectKey) error {
	view.close()
	view.print(fmt.Sprintf("Detached: experiment %[2]s continues. Follow it: vignette status -n %[1]s %[2]s. End it early: vignette stop -n %[1]s %[2]s",
		key.Namespace, key.Name))
	return exit(exitDetached)
}

// counters of messages so far; nil if the server has none yet.
func (c *cluster) counters(ctx context.Context, e *v1alpha1.Experiment) *runapi.Counters {
	if e.Status.T0 == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*refreshInterval)
	defer cancel()
	state, err := c.archive.State(ctx, string(e.UID))
	if err != nil {
		return nil // the view omits them; `results` explains the error
	}
	return &state.Counters
}

// outcome of an ended experiment.
type outcome v1alpha1.ExperimentPhase

func outcomeOf(e *v1alpha1.Experiment) *outcome {
	if e.Status.Phase == v1alpha1.PhaseSucceeded || e.Status.Phase == v1alpha1.PhaseFailed {
		o := outcome(e.Status.Phase)
		return &o
	}
	return nil
}

func (o outcome) report(view *view, e *v1alpha1.Experiment) error {
	view.close()
	if o == outcome(v1alpha1.PhaseFailed) {
		view.print(fmt.Sprintf("%s; events: kubectl -n %s describe experiment %s", failureText(e), e.Namespace, e.Name))
		return exit(exitFailure)
	}
	view.print(successText(e))
	return nil
}

// successText is the headline of an experiment, and where its results are.
func successText(e *v1alpha1.Experiment) string {
	return fmt.Sprintf("%s Succeeded%s\nAll results: vignette results -n %s %s", e.Name, headline(e.Status.Results), e.Namespace, e.Name)
}

// failureText says why an experiment failed, and where its logs are. The archive knows only what was admitted.
func failureText(e *v1alpha1.Experiment) string {
	text := fmt.Sprintf("%s Failed: %s\n", e.Name, e.Status.Message)
	if e.Status.StartTime == nil {
		return text + "It never ran, so that it has neither logs nor results"
	}
	return text + fmt.Sprintf("Its logs are kept: vignette results -n %s %s --download", e.Namespace, e.Name)
}

func headline(r *v1alpha1.ResultsSummary) string {
	if r == nil {
		return ""
	}
	offered := max(r.Offered, r.Expected) // an older status has only the expected ones
	text := fmt.Sprintf(": %d of %d offered deliveries arrived", r.Received, offered)
	if offered == 0 {
		text = fmt.Sprintf(": %d messages sent, no delivery offered", r.Sent)
		if r.Sent > 0 && r.Warnings == 0 { // a warning names another cause
			text += ", as nothing subscribes to them"
		}
	}
	if r.DeliveredPercent != "" {
		text += " (" + r.DeliveredPercent + " %)"
	}
	if unsent := offered - r.Expected; unsent > 0 {
		text += fmt.Sprintf(", %d never sent", unsent)
	}
	if r.MedianDelay != "" {
		text += ", median delay " + delayText(r.MedianDelay)
	}
	if r.KeptUp != nil && !*r.KeptUp {
		text += "; the emulation did NOT keep up"
	}
	if r.OffByAtMost != "" {
		text += "; off by at most " + r.OffByAtMost
	}
	return text + countSuffix(r.Warnings, "WARNING") + countSuffix(r.Gaps, "gap")
}

// countSuffix counts things after a semicolon; empty for none.
func countSuffix(n int32, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 " + what
	}
	return fmt.Sprintf("; %d %ss", n, what)
}
