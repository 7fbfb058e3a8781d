//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// tinyCampaign varies the link's delay and the publisher's period: 2 × 2 points, less one.
func tinyCampaign(namespace string) *v1alpha1.Campaign {
	spec := pair(namespace, "template").Duration("6s").Obj().Spec
	spec.Timeline = nil
	spec.Networks[0].Waveform, spec.Networks[0].Link = "", &v1alpha1.LinkModel{Delay: "1ms"}
	c := &v1alpha1.Campaign{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tiny"}}
	c.Spec = v1alpha1.CampaignSpec{
		Template:    v1alpha1.ExperimentTemplate{Spec: spec},
		Parallelism: 2,
		Matrix: v1alpha1.Matrix{
			Axes: []v1alpha1.Axis{
				{Name: "delay", Path: "networks[wan].link.delay", Values: texts("1ms", "50ms")},
				{Name: "period", Path: "apps[bft].publisher.period", Values: texts("500ms", "1s")},
			},
			Exclude: []v1alpha1.Selection{{"delay": "50ms", "period": "1s"}},
		},
	}
	return c
}

func texts(all ...string) (values []apiextensionsv1.JSON) {
	for _, text := range all {
		values = append(values, apiextensionsv1.JSON{Raw: []byte(`"` + text + `"`)})
	}
	return values
}

func TestACampaignIsEditedAndInterruptedAndRunsEachPointOnce(t *testing.T) {
	t.Parallel()
	c := tinyCampaign(newNamespace(t))
	c.Spec.Reference = &v1alpha1.ReferenceFigures{Ref: "published"}
	mustCreate(t, c)
	waitForCampaign(t, c, startTimeout, "to wait for its reference figures", func(c *v1alpha1.Campaign) bool {
		return meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionAccepted)
	})
	mustCreate(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "published"},
		Data:       map[string]string{"figures.csv": "run,group,metric,value,note\n50ms-500ms,cross,medianSeconds,0.05,made up\n"},
	})
	now := waitForCampaign(t, c, startTimeout, "to have two runs under way", func(c *v1alpha1.Campaign) bool {
		return c.Status.Counts.Running == 2 && c.Status.Counts.Total == 3
	})
	edited := now.DeepCopy()
	edited.Spec.Matrix.Axes[0].Values = texts("1ms", "20ms", "50ms")
	if err := kube.Patch(t.Context(), edited, client.MergeFrom(now)); err != nil {
		t.Fatal(err)
	}
	waitForCampaign(t, c, startTimeout, "to have five runs", func(c *v1alpha1.Campaign) bool { return c.Status.Counts.Total == 5 })
	operators := []client.DeleteAllOfOption{client.InNamespace(platformNamespace), client.MatchingLabels{"app.kubernetes.io/name": "vignette-operator"}}
	if err := kube.DeleteAllOf(t.Context(), &corev1.Pod{}, operators...); err != nil {
		t.Fatal(err)
	}
	done := waitForCampaign(t, c, finishTimeout, "to be over", func(c *v1alpha1.Campaign) bool {
		return c.Status.Phase == v1alpha1.CampaignSucceeded || c.Status.Phase == v1alpha1.CampaignFailed
	})
	t.Logf("%s after %s: %s", done.Status.Phase, done.Status.RoundCompletionTime.Sub(done.Status.RoundStartTime.Time), done.Status.Message)
	wantEachPointOnce(t, done)
	wantCompared(t, done)
}

func waitForCampaign(t *testing.T, c *v1alpha1.Campaign, timeout time.Duration, what string, is func(*v1alpha1.Campaign) bool) *v1alpha1.Campaign {
	t.Helper()
	var now v1alpha1.Campaign
	eventually(t, timeout, "campaign "+c.Name+" "+what, func() error {
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(c), &now); err != nil {
			return err
		}
		if !is(&now) {
			return fmt.Errorf("it is %s, %+v: %s", now.Status.Phase, now.Status.Counts, now.Status.Message)
		}
		return nil
	})
	return &now
}

// wantEachPointOnce wants five succeeded experiments with the levels of five points, and no other.
func wantEachPointOnce(t *testing.T, c *v1alpha1.Campaign) {
	t.Helper()
	want := []string{"tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-20ms-1s-1", "tiny-20ms-500ms-1", "tiny-50ms-500ms-1"}
	var list v1alpha1.ExperimentList
	if err := kube.List(t.Context(), &list, client.InNamespace(c.Namespace)); err != nil {
		t.Fatal(err)
	}
	if got := namesOf(&list); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("experiments %v; want %v", got, want)
	}
	for _, e := range list.Items {
		i := slices.IndexFunc(c.Status.Runs, func(r v1alpha1.CampaignRun) bool { return r.UID == e.UID })
		if i < 0 || c.Status.Runs[i].Phase != v1alpha1.RunSucceeded || c.Status.Runs[i].Results == nil {
			t.Errorf("%s (%s) is not recorded as a run that succeeded: %+v", e.Name, e.UID, c.Status.Runs)
			continue
		}
		levels := c.Status.Runs[i].Levels
		if got := e.Spec.Networks[0].Link.Delay; string(got) != string(levels["delay"]) {
			t.Errorf("%s has a delay of %s; want %s", e.Name, got, levels["delay"])
		}
	}
	if c.Status.Phase != v1alpha1.CampaignSucceeded {
		t.Errorf("the campaign is %s: %s", c.Status.Phase, c.Status.Message)
	}
}

func wantCompared(t *testing.T, c *v1alpha1.Campaign) {
	t.Helper()
	comparison := c.Status.Comparison
	if comparison == nil || comparison.Path == "" || comparison.Runs != 5 {
		t.Fatalf("comparison %+v; want one of five runs", comparison)
	}
	clientset := clientsetOf(t)
	text, err := clientset.CoreV1().RESTClient().Get().RequestURI(runapi.ArchivePath(c.Namespace) + comparison.Path).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var compared struct {
		Runs      []struct{ UID string }
		Reference struct {
			Figures []struct {
				Source, Label   string
				Value, Measured float64
			}
		}
	}
	if err := json.Unmarshal(text, &compared); err != nil || len(compared.Runs) != 5 {
		t.Errorf("the comparison has %d runs (%v); want 5", len(compared.Runs), err)
	}
	figures := compared.Reference.Figures
	if len(figures) != 1 || figures[0].Source != "published" || figures[0].Label != "delay=50ms, period=500ms" || figures[0].Value != 0.05 || figures[0].Measured < 0.05 {
		t.Errorf("reference figures %+v; want that of the point with a delay of 50 ms", figures)
	}
}
