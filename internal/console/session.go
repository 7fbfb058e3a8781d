package console

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// Session is what the page needs to know of its user and its console.
type Session struct {
	// Mode is local for a console on loopback, team for one of a cluster.
	Mode string `json:"mode"`
	// User and Groups are those by which Kubernetes knows the user.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Context of the user's kubeconfig; empty in team mode.
	Context string `json:"context"`
	// Namespace that the page begins with.
	Namespace         string `json:"namespace"`
	PlatformNamespace string `json:"platformNamespace"`
	Version           string `json:"version"`
	// Background reports whether maps have a background map, a PMTiles file.
	Background bool `json:"background"`
}

func (c *Console) session(w http.ResponseWriter, r *http.Request, user *User) error {
	reviews, err := authenticationclient.NewForConfigAndClient(user.Config, &http.Client{Transport: user.Transport})
	if err != nil {
		return err
	}
	who, err := reviews.SelfSubjectReviews().Create(r.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return c.explain(user, err)
	}
	return WriteJSON(w, Session{
		Mode: user.Mode, User: who.Status.UserInfo.Username, Groups: append([]string{}, who.Status.UserInfo.Groups...),
		Context: user.Context, Namespace: user.Namespace, PlatformNamespace: c.config.PlatformNamespace, Version: c.config.Version,
		Background: c.config.Map != nil,
	})
}
