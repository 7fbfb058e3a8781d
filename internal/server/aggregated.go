package server

import (
	"context"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"vignette.dev/vignette/internal/runapi"
)

// Aggregated serves the archive as an API of Kubernetes, at runapi.ArchivePath, behind the API server's aggregation layer.
// The API server authenticates the user and names it in headers. They count only if front accepts the client certificate,
// which only the API server has.
func (s *Server) Aggregated(front authenticator.Request) http.Handler {
	mux := http.NewServeMux()
	base := "/apis/" + runapi.ArchiveGroup + "/" + runapi.ArchiveVersion
	object := "/" + runapi.ArchiveResource + "/" + runapi.DefaultArchive + "/" + runapi.ArchiveSubresource + "/"
	// Only the paths of runapi: the metrics cover all teams.
	object += "v1/"
	// Discovery is for the API server, and reveals nothing.
	mux.HandleFunc("GET "+base, func(w http.ResponseWriter, _ *http.Request) { _ = writeJSON(w, http.StatusOK, discovery()) })
	forward := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serveAggregated(front, w, r) })
	mux.Handle(base+"/namespaces/{namespace}"+object, forward)
	mux.Handle(base+object, forward)
	mux.HandleFunc("GET /healthz", serveHealth)
	return mux
}

func discovery() metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: runapi.ArchiveGroup + "/" + runapi.ArchiveVersion,
		APIResources: []metav1.APIResource{
			{Name: runapi.ArchiveResource, SingularName: "archive", Namespaced: true, Kind: "Archive", Verbs: metav1.Verbs{}},
			{Name: runapi.ArchiveResource + "/" + runapi.ArchiveSubresource, Namespaced: true, Kind: "Archive",
				Verbs: metav1.Verbs{verbRead, verbStore, verbDelete}},
		},
	}
}

// serveAggregated serves a request that the API server passes on.
func (s *Server) serveAggregated(front authenticator.Request, w http.ResponseWriter, r *http.Request) {
	answer, known, err := front.AuthenticateRequest(r)
	if err != nil || !known {
		_ = writeJSON(w, http.StatusUnauthorized, runapi.Problem{Error: "this port is for the API server of Kubernetes: ask it for " + runapi.ArchivePath("NAMESPACE")})
		return
	}
	scope := r.PathValue("namespace")
	// The token and the headers are the API server's concern: the user's identity is in the context.
	r = r.Clone(context.WithValue(r.Context(), verifiedIdentityKey{}, identityOf(answer.User, scope)))
	r.Header.Del("Authorization")
	before := runapi.ArchivePath(scope)
	r.URL.Path = strings.TrimPrefix(r.URL.Path, before)
	r.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, before)
	r.RequestURI = r.URL.RequestURI()
	s.ServeHTTP(w, r)
}

// verifiedIdentityKey is the context key of the Identity that the API server has authenticated.
type verifiedIdentityKey struct{}

// identityOf a user. A token's pod is left out: agents connect directly.
func identityOf(u user.Info, scope string) Identity {
	return Identity{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra(), Scope: scope}
}

// kubernetesProblem is a Problem that is a Status, too: clients of Kubernetes, such as kubectl, show the words of no other answer.
type kubernetesProblem struct {
	metav1.Status
	runapi.Problem
}

func kubernetesStatus(p statusError) metav1.Status {
	status := apierrors.NewGenericServerResponse(p.status, "", schema.GroupResource{}, "", "", 0, false).ErrStatus
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: p.Error(), Reason: status.Reason, Code: int32(p.status),
	}
}
