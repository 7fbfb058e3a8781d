package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// parseBytes reads a number of bytes such as 2Gi, or a share of the folder's volume such as 50%; 0 means no limit.
func parseBytes(flag, text, dir string) (int64, error) {
	if share, isShare := strings.CutSuffix(text, "%"); isShare {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return 0, fmt.Errorf("--%s %q: want bytes such as 2Gi, or a share of the archive's volume such as 50%%", flag, text)
		}
		var volume syscall.Statfs_t
		if err := syscall.Statfs(dir, &volume); err != nil {
			return 0, fmt.Errorf("--%s %s: the size of the volume of %s is not known: %w", flag, text, dir, err)
		}
		return int64(percent / 100 * float64(volume.Blocks) * float64(volume.Bsize)), nil
	}
	bytes, err := amountOf(flag, text)
	if err != nil {
		return 0, fmt.Errorf("%w, or a share of the archive's volume such as 50%%", err)
	}
	return bytes, nil
}

// amountOf reads a number of bytes such as 2Gi; 0 is no bound.
func amountOf(flag, text string) (int64, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return 0, fmt.Errorf("--%s %q: want bytes such as 2Gi", flag, text)
	}
	return quantity.Value(), nil
}

// parseQuotas reads the quotas of namespaces.
func parseQuotas(flag string, texts map[string]string, dir string) (map[string]int64, error) {
	quotas := map[string]int64{}
	for _, namespace := range slices.Sorted(maps.Keys(texts)) {
		bytes, err := parseBytes(flag, texts[namespace], dir)
		if err != nil {
			return nil, fmt.Errorf("namespace %s: %w", namespace, err)
		}
		quotas[namespace] = bytes
	}
	return quotas, nil
}

// parseRetentions reads the retentions of namespaces.
func parseRetentions(flag string, texts map[string]string) (map[string]time.Duration, error) {
	retentions := map[string]time.Duration{}
	for _, namespace := range slices.Sorted(maps.Keys(texts)) {
		retention, err := time.ParseDuration(texts[namespace])
		if err != nil || retention < 0 {
			return nil, fmt.Errorf("--%s: namespace %s has %q: want a time such as 720h, or 0s for ever", flag, namespace, texts[namespace])
		}
		retentions[namespace] = retention
	}
	return retentions, nil
}
