package server

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
)

// teamQuota is the most bytes that all runs of a namespace may have in the archive; 0 means no limit.
func (c *Config) teamQuota(namespace string) int64 {
	if quota, own := c.TeamQuotas[namespace]; own {
		return quota
	}
	return c.TeamQuotaBytes
}

// retention of a namespace's runs; 0 means for ever.
func (c *Config) retention(namespace string) time.Duration {
	if retention, own := c.TeamRetentions[namespace]; own {
		return retention
	}
	return c.Retention
}

// getUsage returns a namespace's share of the archive and its quota.
func (s *Server) getUsage(w http.ResponseWriter, r *http.Request, who Identity) error {
	namespace := cmp.Or(who.Scope, r.URL.Query().Get("namespace"))
	if namespace == "" {
		return statusErrorf(http.StatusBadRequest, "namespace is missing: want the team's namespace")
	}
	if err := requirePermission(r.Context(), who, namespace, "reading runs of namespace "+strconv.Quote(namespace), s.mayRead); err != nil {
		return err
	}
	used, quota := s.store.TeamUsed(namespace)
	usage := runapi.Usage{Namespace: namespace, Runs: len(s.runs.list(namespace, "")), Bytes: used, QuotaBytes: quota,
		RetentionSeconds: s.config.retention(namespace).Seconds()}
	if free, known := s.store.FreeBytes(); known {
		usage.FreeBytes = &free
	}
	return writeJSON(w, http.StatusOK, usage)
}

// usageMetrics are the bytes and quotas of namespaces.
type usageMetrics struct {
	runs  func() []*run
	store *archive.Store
}

var (
	teamBytes = prometheus.NewDesc("vignette_server_team_bytes", "Bytes of a namespace's runs in the archive.", []string{"namespace"}, nil)
	teamQuota = prometheus.NewDesc("vignette_server_team_quota_bytes", "Most bytes that a namespace's runs may have in the archive; 0 means no limit.", []string{"namespace"}, nil)
)

// Describe implements prometheus.Collector.
func (*usageMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- teamBytes
	to <- teamQuota
}

// Collect implements prometheus.Collector.
func (t *usageMetrics) Collect(to chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, run := range t.runs() {
		namespace := run.files.Key().Namespace
		if seen[namespace] {
			continue
		}
		seen[namespace] = true
		used, quota := t.store.TeamUsed(namespace)
		to <- prometheus.MustNewConstMetric(teamBytes, prometheus.GaugeValue, float64(used), namespace)
		to <- prometheus.MustNewConstMetric(teamQuota, prometheus.GaugeValue, float64(quota), namespace)
	}
}
