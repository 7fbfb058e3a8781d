package main

import (
	"strings"
	"testing"
	"time"
)

func TestQuotasAreBytesOrSharesOfTheVolume(t *testing.T) {
	dir := t.TempDir()
	whole, err := parseBytes("team-quota", "100%", dir)
	half, halfErr := parseBytes("team-quota", "50%", dir)
	if err != nil || halfErr != nil || whole <= 0 || half != whole/2 && half != (whole+1)/2 {
		t.Errorf("the whole volume is %d (%v), half of it %d (%v)", whole, err, half, halfErr)
	}
	for text, want := range map[string]int64{"0": 0, "2Gi": 2 << 30, "1500": 1500} {
		if got, err := parseBytes("team-quota", text, dir); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "much", "-1Gi", "0%", "101%", "NaN%", "x%"} {
		if got, err := parseBytes("team-quota", text, dir); err == nil || !strings.Contains(err.Error(), "want bytes such as 2Gi, or a share") {
			t.Errorf("%q is %d, %v; want it refused", text, got, err)
		}
	}
}

func TestRetentionsOfTeamsAreTimes(t *testing.T) {
	got, err := parseRetentions("team-retentions", map[string]string{"team-nor": "720h", "team-prt": "0s"})
	if err != nil || got["team-nor"] != 720*time.Hour || got["team-prt"] != 0 || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseRetentions("team-retentions", map[string]string{"team-nor": "30 days"}); err == nil || !strings.Contains(err.Error(), "namespace team-nor") {
		t.Errorf("%v; want the namespace named", err)
	}
}

func TestQuotasOfRunsAndScenariosAreBytes(t *testing.T) {
	if got, err := amountOf("quota", "2Gi"); err != nil || got != 2<<30 {
		t.Errorf("2Gi are %d, %v", got, err)
	}
	for _, text := range []string{"-1Gi", "2 GiB", "", "50%"} {
		if got, err := amountOf("scenario-quota", text); err == nil || err.Error() != `--scenario-quota "`+text+`": want bytes such as 2Gi` {
			t.Errorf("%q is %d, %v; want it refused", text, got, err)
		}
	}
}
