package image

import (
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func TestEveryInstanceRunsTheUsersCommandInTheUsersImage(t *testing.T) {
	r := Kind{}.Render(apps.Site{
		App:       v1alpha1.App{Image: "i", Command: []string{"a", "b"}, Subscribes: []string{"a/#"}, Env: []v1alpha1.EnvVar{{Name: "X", Value: new("1")}}},
		Instances: []string{"n/a/1", "n/a/2"},
	})
	if r.Image != "i" || len(r.Subscriptions) != 2 || r.Subscriptions[1][0] != "a/#" || len(r.Instances) != 2 || r.Instances[1].Name != "n/a/2" || r.Instances[1].Command[1] != "b" || *r.Env[0].Value != "1" {
		t.Errorf("rendered %+v", r)
	}
}
