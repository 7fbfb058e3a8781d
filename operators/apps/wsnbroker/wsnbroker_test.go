package wsnbroker

import (
	"strings"
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func site(implementation v1alpha1.WSNImplementation) apps.Site {
	return apps.Site{
		App: v1alpha1.App{Name: "broker", WSNBroker: &v1alpha1.WSNBroker{Implementation: implementation}}, Node: "nor", Instances: []string{"nor/broker"},
		MetricsPorts: []int{9464}, Images: apps.Images{Traffic: "traffic", WSNCXF: "wsn-cxf"},
	}
}

func TestConfigurationsMatchTheirGoldenFiles(t *testing.T) {
	secure := site(v1alpha1.WSNVignette)
	secure.App.Security = &v1alpha1.Security{TLS: true, Password: true}
	for name, s := range map[string]apps.Site{"vignette": site(v1alpha1.WSNVignette), "secure": secure, "cxf": site(v1alpha1.WSNCXF)} {
		t.Run(name, func(t *testing.T) {
			for _, file := range (Kind{}).Render(s).Files {
				golden.Check(t, name+"-"+file.Path[strings.LastIndexByte(file.Path, '/')+1:], file.Content)
			}
			if c := Config(s); c.Validate() != nil {
				t.Error(c.Validate())
			}
		})
	}
}

func TestEachImplementationHasItsImage(t *testing.T) {
	for implementation, image := range map[v1alpha1.WSNImplementation]string{v1alpha1.WSNVignette: "traffic", v1alpha1.WSNCXF: "wsn-cxf"} {
		r := Kind{}.Render(site(implementation))
		if r.Image != image || len(r.Instances) != 1 || len(r.MetricsPorts) != 1 {
			t.Errorf("%s rendered as %+v", implementation, r)
		}
	}
	without := site(v1alpha1.WSNCXF)
	without.MetricsPorts = []int{0}
	if r := (Kind{}).Render(without); r.MetricsPorts != nil || strings.Contains(r.Files[0].Content, "javaagent") {
		t.Errorf("without a metrics port: %+v", r)
	}
}
