// Package wsnbroker renders WS-Notification brokers: the platform's own, or Apache CXF's.
package wsnbroker

import (
	"encoding/json"
	"fmt"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders WS-Notification brokers.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "wsnbroker" }

// Render renders one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	r := apps.Rendering{StopGraceSeconds: 3, MetricsPorts: site.StatisticsPorts()}
	var command []string
	if site.App.WSNBroker.Implementation == v1alpha1.WSNCXF {
		start, exporter := apps.RunFile("start.sh"), exporterPath()
		r.Image, command = site.Images.WSNCXF, []string{"/bin/sh", start}
		r.Files = []agentconfig.File{{Path: start, Content: CXFScript(site)}, {Path: exporter, Content: exporterConfig}}
	} else {
		path := apps.RunFile("wsn-broker.json")
		r.Image, command = site.Images.Traffic, []string{"/traffic", "wsn-broker", "--config", path}
		r.Files = []agentconfig.File{{Path: path, Content: encode(Config(site))}}
	}
	r.Instances = []agentconfig.Instance{{Name: site.Instances[0], Command: command}}
	return r
}

func encode(config wsn.BrokerConfig) string {
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("configuration of broker %s: %v", config.Instance, err)) // plain strings and numbers always encode
	}
	return string(text) + "\n"
}

// Config is the configuration of the platform's own broker.
func Config(site apps.Site) wsn.BrokerConfig {
	c := wsn.BrokerConfig{Instance: site.Instances[0], Listen: fmt.Sprintf(":%d", apps.Port(v1alpha1.ProtocolWSN, site.App)), MetricsPort: site.MetricsPorts[0]}
	s := site.App.Security
	if s == nil {
		return c
	}
	file := func(name string) string { return agentconfig.SecurityDir + "/" + name }
	if s.TLS {
		c.CertFile, c.KeyFile, c.CAFile = file("tls.crt"), file("tls.key"), file("ca.crt")
	}
	if s.Password {
		c.UsernameFile, c.PasswordFile = file("username"), file("password")
	}
	return c
}

func exporterPath() string { return apps.RunFile("exporter.yaml") }

// exporterConfig configures Prometheus' JMX exporter. It exports the totals of ActiveMQ, through which CXF passes all messages,
// because CXF's own beans have only lists of names.
const exporterConfig = `lowercaseOutputName: true
includeObjectNames: ["org.apache.activemq:type=Broker,brokerName=localhost"]
rules:
- pattern: 'org.apache.activemq<type=Broker, brokerName=localhost><>(Total\w+Count|CurrentConnectionsCount|MemoryPercentUsage)'
  name: activemq_$1
`

// CXFScript starts CXF's own launcher. ActiveMQ writes to /tmp and does not listen.
func CXFScript(site apps.Site) string {
	agent := ""
	if port := site.MetricsPorts[0]; port != 0 {
		agent = fmt.Sprintf(" \\\n  -javaagent:/opt/wsn-cxf/agent/exporter.jar=%d:%s", port, exporterPath())
	}
	return fmt.Sprintf(`cd /tmp
exec java -XX:+UseSerialGC -Xmx256m -Djava.awt.headless=true%s \
  -cp '/opt/wsn-cxf/lib/*' org.apache.cxf.wsn.services.Service \
  -rootUrl http://0.0.0.0:%d/wsn -brokerUrl 'vm:(broker:()?persistent=false)' -jmxEnable true
`, agent, apps.Port(v1alpha1.ProtocolWSN, site.App))
}
