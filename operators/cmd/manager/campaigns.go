package main

import (
	"net/http"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/campaign"
)

// registerCampaigns adds the controller of campaigns. A comparison takes minutes, so the controller limits the time of each request.
func (c *config) registerCampaigns(manager ctrl.Manager, token runs.TokenSource) error {
	campaigns := &campaign.Reconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Clock: clock.RealClock{}, Recorder: manager.GetEventRecorderFor("vignette"),
		Archive: runs.New(c.options.Render.ServerURL, &http.Client{}, token),
	}
	return campaigns.SetupWithManager(manager, c.concurrent)
}
