package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
)

// teamQuota is what all runs of a namespace may have in the archive, in bytes; 0 is no bound.
func (c *Config) teamQuota(namespace string) int64 {
	if quota, own := c.TeamQuotas[namespace]; own {
		return quota
	}
	return c.TeamQuotaBytes
}

// retention of a namespace's runs; 0 is for ever.
func (c *Config) retention(namespace string) time.Duration {
	if retention, own := c.TeamRetentions[namespace]; own {
		return retention
	}
	return c.Retention
}

// getUsage tells what a namespace has in the archive, and what it may have.
func (s *Server) getUsage(w http.ResponseWriter, r *http.Request, who Identity) error {
	namespace := who.Scope
	if namespace == "" {
		namespace = r.URL.Query().Get("namespace")
	}
	if namespace == "" {
		return statusErrorf(http.StatusBadRequest, "namespace is missing: want the team whose part of the archive is asked for")
	}
	if err := requirePermission(r.Context(), who, namespace, "reading runs of namespace "+strconv.Quote(namespace), s.mayRead); err != nil {
		return err
	}
	used, quota := s.store.TeamUsed(namespace)
	return writeJSON(w, http.StatusOK, runapi.Usage{Namespace: namespace, Runs: len(s.runs.list(namespace, "")), Bytes: used, QuotaBytes: quota,
		RetentionSeconds: s.config.retention(namespace).Seconds()})
}

// usageMetrics are the metrics of what namespaces have in the archive.
type usageMetrics struct {
	runs  func() []*run
	store *archive.Store
}

var (
	teamBytes = prometheus.NewDesc("vignette_server_team_bytes", "Bytes that the runs of a namespace have in the archive.", []string{"namespace"}, nil)
	teamQuota = prometheus.NewDesc("vignette_server_team_quota_bytes", "Bytes that the runs of a namespace may have in the archive; 0 is no bound.", []string{"namespace"}, nil)
)

// Describe implements prometheus.Collector.
func (*usageMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- teamBytes
	to <- teamQuota
}

// Collect implements prometheus.Collector.
func (t *usageMetrics) Collect(to chan<- prometheus.Metric) {
	told := map[string]bool{}
	for _, run := range t.runs() {
		namespace := run.files.Key().Namespace
		if told[namespace] {
			continue
		}
		told[namespace] = true
		used, quota := t.store.TeamUsed(namespace)
		to <- prometheus.MustNewConstMetric(teamBytes, prometheus.GaugeValue, float64(used), namespace)
		to <- prometheus.MustNewConstMetric(teamQuota, prometheus.GaugeValue, float64(quota), namespace)
	}
}
