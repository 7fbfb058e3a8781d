//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
)

var errorf = fmt.Errorf

func manifestOf(t *testing.T, uid types.UID) runapi.Manifest {
	t.Helper()
	var manifest runapi.Manifest
	archive(t, "runs/"+string(uid)+"/files", nil, &manifest)
	return manifest
}

// mosquittoImage is the platform's own Mosquitto image: the one image with a shell that every
// installation has, named after the server's.
func mosquittoImage(t *testing.T) string {
	t.Helper()
	var server appsv1.Deployment
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: platformNamespace, Name: "vignette-server"}, &server); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(server.Spec.Template.Spec.Containers[0].Image, "server", "mosquitto", 1)
}

// brief writes a run's figures and verdict for a test's log, without the moments at which the emulation was late.
func brief(results runapi.Results) string {
	type outcome struct {
		Messages     runapi.Messages        `json:"messages"`
		DelaySeconds *runapi.Quantiles      `json:"delaySeconds"`
		Requests     *runapi.RequestResults `json:"requests,omitempty"`
		Verdict      *runapi.Verdict        `json:"verdict"`
	}
	o := outcome{results.Messages, results.DelaySeconds, results.Requests, nil}
	if v := results.Verdict; v != nil {
		o.Verdict = &runapi.Verdict{KeptUp: v.KeptUp, Exceeded: v.Exceeded, Context: v.Context}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return results.Experiment + ": " + string(text)
}
