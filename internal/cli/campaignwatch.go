package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// watchCampaign follows a campaign to the end of its round.
func (c *cluster) watchCampaign(ctx context.Context, followed *v1alpha1.Campaign, view *view) error {
	key := client.ObjectKeyFromObject(followed)
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		camp := &v1alpha1.Campaign{}
		err := c.kube.Get(ctx, key, camp)
		switch {
		case ctx.Err() != nil:
			view.close()
			view.print(fmt.Sprintf("Detached: campaign %[2]s goes on. Look at it: vignette campaign status -n %[1]s %[2]s. Hold it: vignette campaign suspend -n %[1]s %[2]s",
				key.Namespace, key.Name))
			return exit(exitDetached)
		case apierrors.IsNotFound(err):
			view.close()
			return fmt.Errorf("campaign %s was deleted while it ran; what was measured: vignette campaign results -n %s %[1]s", key.Name, key.Namespace)
		case err == nil:
			view.line(campaignLine(camp, time.Now()), campaignPhase(camp)+camp.Status.Counts.Summary, time.Now())
			if camp.Status.ObservedGeneration >= followed.Generation {
				if done, err := campaignEnded(view, camp); done {
					return err
				}
			}
		default:
			view.note(fmt.Sprintf("cannot reach the cluster, trying again: %v", err))
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// campaignLine is everything there is to say of a campaign in one line.
func campaignLine(camp *v1alpha1.Campaign, now time.Time) string {
	counts := camp.Status.Counts
	line := fmt.Sprintf("%s  %-9s  round %d  %d of %d runs done, %d running, %d failed", camp.Name, campaignPhase(camp), camp.Status.Round,
		counts.Succeeded+counts.Failed+counts.Skipped, counts.Total, counts.Running, counts.Failed)
	if rest := timeLeft(camp, now); rest != "" {
		line += "  about " + rest + " left"
	}
	if camp.Status.Message != "" {
		line += "  " + oneLine(camp.Status.Message)
	}
	return line
}

// campaignEnded tells that there is nothing more to follow for now, with what came of it.
func campaignEnded(view *view, camp *v1alpha1.Campaign) (bool, error) {
	where := fmt.Sprintf("-n %s %s", camp.Namespace, camp.Name)
	switch camp.Status.Phase {
	case v1alpha1.CampaignSucceeded, v1alpha1.CampaignFailed:
		view.close()
		view.print(fmt.Sprintf("%s %s: %s", camp.Name, camp.Status.Phase, runCounts(camp.Status.Counts)))
		view.print("What was measured: vignette campaign results " + where)
		if camp.Status.Phase == v1alpha1.CampaignFailed {
			return true, exit(exitFailure)
		}
		return true, nil
	case v1alpha1.CampaignScheduled:
		view.close()
		view.print(fmt.Sprintf("%s waits for its next round: vignette campaign status %s", camp.Name, where))
		return true, nil
	}
	return false, nil
}
