//go:build e2e

package e2e

import (
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
