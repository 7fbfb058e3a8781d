package server

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// namespaceLabel of a series names its team.
const namespaceLabel = "namespace"

// Metrics are those of the server and of all teams' runs. They are for administrators of the cluster, on a port of their own
// that network policies close to teams; teams read getMetrics.
func (s *Server) Metrics() http.Handler {
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
}

// getMetrics serves the series of one team, or of one of its runs.
func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request, who Identity) error {
	namespace := cmp.Or(who.Scope, r.URL.Query().Get("namespace"))
	if err := requirePermission(r.Context(), who, namespace, "reading metrics of namespace "+strconv.Quote(namespace), s.mayRead); err != nil {
		return err
	}
	if namespace == "" {
		return statusErrorf(http.StatusBadRequest, "namespace is missing: want the team's namespace")
	}
	limitSending(w, 0) // who collects metrics waits no longer
	if uid := r.URL.Query().Get("run"); uid != "" {
		return s.serveMetricsOf(w, r, namespace, uid)
	}
	of := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := s.metrics.registry.Gather()
		return keepNamespace(families, namespace), err
	})
	promhttp.HandlerFor(of, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

// serveMetricsOf a run computes no other run's series.
func (s *Server) serveMetricsOf(w http.ResponseWriter, r *http.Request, namespace, uid string) error {
	one := s.runs.get(uid)
	if one == nil || one.files.Key().Namespace != namespace {
		return statusErrorf(http.StatusNotFound, "run %q is not in namespace %s", uid, namespace)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&liveMetrics{runs: func() []*run { return []*run{one} }, now: s.config.Now})
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

// keepNamespace keeps the series whose label has the namespace.
func keepNamespace(families []*dto.MetricFamily, namespace string) (kept []*dto.MetricFamily) {
	for _, family := range families {
		family.Metric = slices.DeleteFunc(family.Metric, func(m *dto.Metric) bool {
			return !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == namespaceLabel && l.GetValue() == namespace })
		})
		if len(family.Metric) > 0 {
			kept = append(kept, family)
		}
	}
	return kept
}
