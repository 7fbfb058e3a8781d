package console

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"
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
		return Errorf(http.StatusUnprocessableEntity, "%s", err)
	}
	return WriteJSON(w, clone)
}
