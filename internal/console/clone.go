package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"vignette.dev/vignette/internal/runapi/client"
)

// Clone is another experiment made of a recorded run.
type Clone struct {
	// Text is the YAML of the experiment, and of a scenario that it needs.
	Text string `json:"text"`
	// Mark is for the experiment once it is created.
	Mark CloneMark `json:"mark"`
	// Notes say what the clone does not repeat, and what differs between then and now.
	Notes []string `json:"notes"`
}

// CloneMark ties an experiment to the run that it repeats or is based on.
type CloneMark struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Annotations by which the platform compares the experiment with the run.
	Annotations map[string]string `json:"annotations"`
}

// CloneFunc makes a clone of a run as a user. The run is given by its UID or the name of its experiment.
type CloneFunc func(ctx context.Context, config *rest.Config, namespace, run string) (*Clone, error)

func (c *Console) clone(w http.ResponseWriter, r *http.Request, user *User) error {
	if c.config.Clone == nil {
		return Errorf(http.StatusNotImplemented, "this console makes no clones: use vignette rerun")
	}
	clone, err := c.config.Clone(r.Context(), user.Config, r.PathValue("namespace"), r.PathValue("run"))
	if err != nil {
		return c.explainClone(user, err)
	}
	return WriteJSON(w, clone)
}

// explainClone keeps the answer of the API server or of the archive. Any other error is about the run, which cannot be cloned.
func (c *Console) explainClone(user *User, err error) error {
	var answer *client.Error
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &answer):
		return Errorf(answer.Status, "%s", answer.Said())
	case errors.As(err, &status), errors.As(err, new(*url.Error)), errors.Is(err, context.Canceled):
		return c.explain(user, err)
	}
	return Errorf(http.StatusUnprocessableEntity, "%s", err)
}
