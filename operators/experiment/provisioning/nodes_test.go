package provisioning

import (
	"context"
	"errors"
	"strings"
	"testing"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

func TestARefusedNetworkAttachmentDefinitionIsNamed(t *testing.T) {
	kind := nadv1.Resource("network-attachment-definitions")
	for name, c := range map[string]struct {
		refusal error
		failure string // empty for none
	}{
		"by a policy":           {apierrors.NewForbidden(kind, "run-wan", errors.New("denied by policy")), "the cluster refuses NetworkAttachmentDefinition run-wan"},
		"by a policy's webhook": {apierrors.NewBadRequest("admission webhook denied the request"), "the cluster refuses NetworkAttachmentDefinition run-wan"},
		"by a quota of a team":  {apierrors.NewForbidden(kind, "run-wan", errors.New("exceeded quota: team")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.refusal }}).Build()
			e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "run", UID: "u1"}}
			e.Spec.Networks = []v1alpha1.Network{{Name: "wan"}}
			s := &scope.Scope{Experiment: e}
			stop, err := (&Provisioner{Objects: &objects.Objects{Client: kube, Live: kube}}).ensureAttachments(t.Context(), s)
			if !stop || err != nil || (s.Setback != nil) != (c.failure == "") {
				t.Errorf("stop %t, error %v, setback %v", stop, err, s.Setback)
			}
			if failure := s.Failure(); (failure != nil) != (c.failure != "") || failure != nil && !strings.Contains(failure.Message, c.failure) {
				t.Errorf("failure %+v; want %q", failure, c.failure)
			}
		})
	}
}
