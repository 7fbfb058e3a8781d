package mqttsngateway

import (
	"encoding/json"
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func site(spec v1alpha1.MQTTSNGateway, broker apps.Server) apps.Site {
	return apps.Site{App: v1alpha1.App{Name: "gateway", MQTTSNGateway: &spec}, Node: "hq", Instances: []string{"hq/gateway"}, Seed: 7, Servers: []apps.Server{broker},
		MetricsPorts: []int{9465}, Images: apps.Images{Traffic: "traffic:1"}}
}

func TestRenderingsMatchTheirGoldenFiles(t *testing.T) {
	mosquitto := apps.Server{Address: "127.0.0.1:1883", Node: "hq", App: v1alpha1.App{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}}}
	secure := apps.Server{Address: "nor:8883", Node: "nor", App: v1alpha1.App{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{},
		Security: &v1alpha1.Security{TLS: true, Password: true}}}
	quarter := v1alpha1.Duration("15m")
	everything := site(v1alpha1.MQTTSNGateway{To: "nor/broker", Mode: v1alpha1.GatewayAggregating, MaxClients: 30, Advertise: &quarter}, secure)
	everything.PredefinedTopics = map[string]uint16{"/PRT/PRT-UNIT001/PRT-S001/location": 1, "/PRT/PRT-UNIT001/PRT-S002/location": 2}
	for name, s := range map[string]apps.Site{
		"transparent": site(v1alpha1.MQTTSNGateway{To: "broker", Mode: v1alpha1.GatewayTransparent, MaxClients: 256}, mosquitto),
		"everything":  everything,
	} {
		t.Run(name, func(t *testing.T) {
			rendering := Kind{}.Render(s)
			text, err := json.MarshalIndent(rendering, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name+".json", string(text)+"\n")
			var config mqttsn.GatewayConfig
			if err := json.Unmarshal([]byte(rendering.Files[0].Content), &config); err != nil || config.Validate() != nil {
				t.Errorf("the gateway refuses its configuration: %v, %v", err, config.Validate())
			}
		})
	}
}
