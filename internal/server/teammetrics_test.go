package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestATeamSeesItsOwnMetricsOnly(t *testing.T) {
	l := newLab(t)
	delivered := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "delivered"}, []string{"namespace", "experiment"})
	l.server.metrics.registry.MustRegister(delivered)
	delivered.WithLabelValues("team-nor", "bft").Set(1)
	delivered.WithLabelValues("team-prt", "secret-run").Set(2)
	// What is called like a team's in another label is not the team's.
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
			request, err := http.NewRequest(http.MethodGet, l.http.URL+"/v1/metrics"+c.query, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if c.token != "" {
				request.Header.Set("Authorization", "Bearer "+c.token)
			}
			answer, err := l.http.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != c.status || !strings.Contains(string(text), c.says) {
				t.Errorf("%d %s, %v; want %d and %s", answer.StatusCode, text, err, c.status, c.says)
			}
			if strings.Contains(string(text), "team-prt") || strings.Contains(string(text), "go_goroutines") {
				t.Errorf("what is not the team's: %s", text)
			}
		})
	}
}
