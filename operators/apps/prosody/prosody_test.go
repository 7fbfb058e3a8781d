package prosody

import (
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func sites() map[string]apps.Site {
	site := func(security *v1alpha1.Security, ports ...int) apps.Site {
		return apps.Site{App: v1alpha1.App{Name: "server", Prosody: &v1alpha1.Prosody{}, Security: security}, Node: "prt", Instances: []string{"prt/server"}, MetricsPorts: ports}
	}
	return map[string]apps.Site{
		"open":            site(nil, 9100),
		"without-metrics": site(nil, 0),
		"tls":             site(&v1alpha1.Security{TLS: true}, 9100),
		"password":        site(&v1alpha1.Security{Password: true}, 9100),
		"secure":          site(&v1alpha1.Security{TLS: true, Password: true}, 9100),
	}
}

func TestConfigurationsMatchTheirGoldenFiles(t *testing.T) {
	for name, site := range sites() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".cfg.lua", Config(site))
			if name == "open" || name == "secure" {
				golden.Check(t, name+".sh", StartScript(site))
			}
		})
	}
}

func TestTheServerIsStartedByItsScriptAndServesStatistics(t *testing.T) {
	r := Kind{}.Render(sites()["open"])
	if len(r.Instances) != 1 || r.Instances[0].Command[1] != r.Files[1].Path || len(r.MetricsPorts) != 1 || r.MetricsPorts[0] != 9100 {
		t.Errorf("rendered %+v", r)
	}
	if r := (Kind{}).Render(sites()["without-metrics"]); len(r.MetricsPorts) != 0 {
		t.Errorf("serves %v; want none", r.MetricsPorts)
	}
}
