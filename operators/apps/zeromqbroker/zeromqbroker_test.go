package zeromqbroker

import (
	"encoding/json"
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func sites() map[string]apps.Site {
	site := func(pgm *apps.PGM) apps.Site {
		s := apps.Site{App: v1alpha1.App{Name: "broker", ZeroMQBroker: &v1alpha1.ZeroMQBroker{Transport: v1alpha1.ZeroMQTCP}}, Node: "hq",
			Instances: []string{"hq/broker"}, MetricsPorts: []int{9464}, Images: apps.Images{ZeroMQ: "zeromq:dev"}, PGM: pgm}
		if pgm != nil {
			s.App.ZeroMQBroker.Transport, s.Interface = v1alpha1.ZeroMQPGM, "wan"
		}
		return s
	}
	multicast := site(&apps.PGM{Publishers: []string{"239.255.9.1:5601", "239.255.9.1:5602"}, Subscribers: "239.254.9.1:5556", RateKilobits: 250,
		Filters: []string{"/PRT/+/location", "chat/#"}})
	raw := multicast
	raw.App.ZeroMQBroker = &v1alpha1.ZeroMQBroker{Transport: v1alpha1.ZeroMQPGMRaw}
	return map[string]apps.Site{"tcp": site(nil), "pgm": multicast, "pgm-raw": raw}
}

func TestConfigurationsMatchTheirGoldenFilesAndTheBrokerAcceptsThem(t *testing.T) {
	for name, site := range sites() {
		t.Run(name, func(t *testing.T) {
			r := Kind{}.Render(site)
			golden.Check(t, name+".json", r.Files[0].Content+"\n")
			var config zeromq.BrokerConfig
			if err := json.Unmarshal([]byte(r.Files[0].Content), &config); err != nil {
				t.Fatal(err)
			}
			if err := config.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheBrokerRunsOnceAndReadsItsFile(t *testing.T) {
	r := Kind{}.Render(sites()["tcp"])
	if len(r.Instances) != 1 || r.Image != "zeromq:dev" || r.Instances[0].Command[3] != r.Files[0].Path || len(r.MetricsPorts) != 1 || r.Topics != nil || r.Subscriptions != nil {
		t.Errorf("rendered %+v", r)
	}
}
