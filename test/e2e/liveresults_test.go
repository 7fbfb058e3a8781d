//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// sample is a sample of an instant query.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (s sample) value() float64 {
	v, _ := strconv.ParseFloat(fmt.Sprint(s.Value[1]), 64)
	return v
}

// prometheus answers a current query, as it does for Grafana.
func prometheus(t *testing.T, query string) ([]sample, error) {
	t.Helper()
	status, text := getFromPod(t, podsOf(t, "vignette-prometheus")[0], 9090, "/api/v1/query?query="+url.QueryEscape(query), "Bearer "+tokenOf(t, platformNamespace, "vignette-metrics-reader"))
	if status != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", status, text)
	}
	var answer struct {
		Data struct {
			Result []sample `json:"result"`
		} `json:"data"`
	}
	return answer.Data.Result, json.Unmarshal([]byte(text), &answer)
}

// panelQueries returns the queries of the chart's dashboards by dashboard, panel and number, with annotations.
func panelQueries(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../charts/vignette/files/dashboards", file))
	if err != nil {
		t.Fatal(err)
	}
	type target struct {
		Expr  string `json:"expr"`
		RefID string `json:"refId"`
	}
	var dashboard struct {
		Annotations struct {
			List []struct{ Name, Expr string } `json:"list"`
		} `json:"annotations"`
		Panels []struct {
			Title   string   `json:"title"`
			Targets []target `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			queries[file+", "+p.Title+", "+q.RefID] = q.Expr
		}
	}
	for _, a := range dashboard.Annotations.List {
		queries[file+", annotation "+a.Name] = a.Expr
	}
	return queries
}

// wideExperiment has everything on the dashboards: places, movement, links with SINR, losses, routing, a broadcast to all.
func wideExperiment(t *testing.T, namespace string) *v1alpha1.Experiment {
	t.Helper()
	replay(t, namespace, "leaving", leaving())
	e := broadcasters(namespace, "live-run", 4, "250ms", "bytes:200").Duration("36s").Replay("leaving").
		Model(func(n *v1alpha1.Network) {
			n.RFPipe = &v1alpha1.RFPipeModel{PHY: widebandPHY, Rate: v1alpha1.DataRate("175kbit")}
			n.Routing = &v1alpha1.Routing{Protocol: "olsrv2"}
		}).Obj()
	e.Spec.Timeline[1].At = "34s"
	return e
}

// startAsCampaign makes the experiment the one run of a campaign.
func startAsCampaign(t *testing.T, e *v1alpha1.Experiment) *v1alpha1.Experiment {
	t.Helper()
	campaign := &v1alpha1.Campaign{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "live"}}
	campaign.Spec.Template.Spec, campaign.Spec.Repeats = e.Spec, 1
	if err := kube.Create(t.Context(), campaign); err != nil {
		t.Fatalf("campaign: %v", err)
	}
	eventually(t, startTimeout, "the campaign's run", func() error {
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(campaign), campaign); err != nil {
			return err
		}
		if runs := campaign.Status.Runs; len(runs) == 0 || runs[0].UID == "" {
			return errorf("runs %+v", runs)
		}
		return nil
	})
	return get(t, &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: campaign.Status.Runs[0].Name}})
}

// askAll runs the queries that had no data yet, and removes those with data. One without an answer is asked again.
func askAll(t *testing.T, queries map[string]string, variables *strings.Replacer) {
	t.Helper()
	for name, query := range queries {
		samples, err := prometheus(t, variables.Replace(query))
		if err != nil {
			t.Logf("%s: %v", name, err)
		} else if len(samples) > 0 {
			delete(queries, name)
		}
	}
}

// TestLiveResultsAreThoseOfTheAnalysisAndEveryPanelHasData runs every query of every dashboard on the real Prometheus during a run.
func TestLiveResultsAreThoseOfTheAnalysisAndEveryPanelHasData(t *testing.T) {
	t.Parallel()
	err := kube.Get(t.Context(), client.ObjectKey{Namespace: platformNamespace, Name: "vignette-prometheus"}, &appsv1.Deployment{})
	if apierrors.IsNotFound(err) {
		t.Skip("the platform is installed without its Prometheus (monitoring.prometheus.enabled)")
	}
	namespace := newNamespace(t)
	mustCreate(t, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("20")}}})
	e := waitForT0(t, startAsCampaign(t, wideExperiment(t, namespace)), 0)
	variables := strings.NewReplacer("$namespace", namespace, "$experiment", e.Name, "$uid", string(e.UID), "$node", ".*", "$campaign", "live")
	queries := map[string]string{}
	for _, file := range []string{"experiment-live.json", "platform.json", "campaign.json"} {
		maps.Copy(queries, panelQueries(t, file))
	}
	if len(queries) < 25 {
		t.Errorf("%d queries; want 25 at least", len(queries))
	}
	for deadline := time.Now().Add(finishTimeout); len(queries) > 0 && time.Now().Before(deadline); time.Sleep(2 * time.Second) {
		askAll(t, queries, variables)
		if phase := get(t, e).Status.Phase; phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseFailed {
			break
		}
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	checkLiveFigures(t, done)
	for deadline := time.Now().Add(30 * time.Second); len(queries) > 0 && time.Now().Before(deadline); time.Sleep(2 * time.Second) {
		askAll(t, queries, variables) // the campaign has its run's results soon
	}
	for name, query := range queries {
		t.Errorf("%s: no data from T0 to the end of %s", name, variables.Replace(query))
	}
}

// checkLiveFigures compares the last live figures with the results.
func checkLiveFigures(t *testing.T, done *v1alpha1.Experiment) {
	t.Helper()
	var results runapi.Results
	if err := json.Unmarshal([]byte(mustVignette(t, done.Namespace, "results", done.Name, "-o", "json")), &results); err != nil {
		t.Fatal(err)
	}
	head := results.HeadlineGroup()
	m := head.Messages
	if m.Sent == 0 || m.Lost == 0 || m.Received == 0 || head.DelaySeconds == nil {
		t.Fatalf("%+v, %+v; want some messages to arrive and some to be lost", m, head.DelaySeconds)
	}
	_, offered := m.Counted()
	share := float64(m.Received) / float64(offered)
	of := fmt.Sprintf(`{namespace=%q,experiment=%q,uid=%q`, done.Namespace, done.Name, done.UID)
	for what, c := range map[string]struct {
		query string
		want  float64
	}{
		"delivered share": {`experiment:vignette_delivered:ratio` + of + `}`, share},
		"median delay":    {`experiment:vignette_delay_seconds:quantile` + of + `,quantile="0.5"}`, head.DelaySeconds.Median},
		"messages sent":   {`vignette_experiment_messages_sent_total` + of + `}`, float64(results.Messages.Sent)},
	} {
		samples, err := prometheus(t, c.query)
		if err != nil || len(samples) != 1 {
			t.Errorf("%s: %d series, %v from %s; want one", what, len(samples), err, c.query)
			continue
		}
		got := samples[0].value()
		t.Logf("%s: live %g, results %g", what, got, c.want)
		if math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s: live %g, results %g; want them within 1 %%", what, got, c.want)
		}
	}
}
