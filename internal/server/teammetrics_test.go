package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/runapi"
)

func TestATeamSeesItsOwnMetricsOnly(t *testing.T) {
	l := newLab(t)
	delivered := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "delivered"}, []string{"namespace", "experiment"})
	l.server.metrics.registry.MustRegister(delivered)
	delivered.WithLabelValues("team-nor", "bft").Set(1)
	delivered.WithLabelValues("team-prt", "secret-run").Set(2)
	// A team's name in another label does not make it the team's.
	delivered.WithLabelValues("team-prt", "team-nor").Set(3)
	for name, c := range map[string]struct {
		token, query string
		status       int
		says         string
	}{
		"its viewer":          {"viewer", "?namespace=team-nor", 200, `delivered{experiment="bft",namespace="team-nor"} 1`},
		"its workflow":        {"workflow", "?namespace=team-nor", 200, `namespace="team-nor"`},
		"another team":        {"prt-admin", "?namespace=team-nor", 403, "not for paula"},
		"a viewer, of all":    {"viewer", "", 403, "not for vera"},
		"nobody":              {"", "?namespace=team-nor", 401, "needs a token"},
		"the operator of all": {"operator", "", 400, "namespace is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := l.metrics(c.token, c.query)
			if status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("%d %s; want %d and %s", status, text, c.status, c.says)
			}
			if strings.Contains(text, "team-prt") || strings.Contains(text, "go_goroutines") {
				t.Errorf("what is not the team's: %s", text)
			}
		})
	}
}

func TestTheMetricsOfARunAreThoseOfNoOtherOne(t *testing.T) {
	l := newLab(t)
	own := l.plan().Plan
	l.plan(func(p *runapi.Plan) { p.UID = "run-2" })
	for name, c := range map[string]struct {
		token, query string
		status       int
		says         string
	}{
		"a run of its namespace":       {"viewer", "?namespace=team-nor&run=" + own.UID, 200, `uid="` + own.UID + `"`},
		"no run":                       {"viewer", "?namespace=team-nor&run=nobody", 404, "is not in namespace team-nor"},
		"a run of another namespace":   {"prt-admin", "?namespace=team-prt&run=" + own.UID, 404, "is not in namespace team-prt"},
		"another team's run, as whose": {"prt-admin", "?namespace=team-nor&run=" + own.UID, 403, "not for paula"},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := l.metrics(c.token, c.query)
			if status != c.status || !strings.Contains(text, c.says) || strings.Contains(text, "run-2") {
				t.Errorf("%d %s; want %d and %s, and nothing of run-2", status, text, c.status, c.says)
			}
		})
	}
}

func (l *lab) metrics(token, query string) (status int, text string) {
	l.t.Helper()
	request, err := http.NewRequest(http.MethodGet, l.http.URL+"/v1/metrics"+query, http.NoBody)
	if err != nil {
		l.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := l.http.Client().Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
