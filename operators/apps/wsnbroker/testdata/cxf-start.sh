cd /tmp
exec java -XX:+UseSerialGC -Xmx256m -Djava.awt.headless=true \
  -javaagent:/opt/wsn-cxf/agent/exporter.jar=9464:/vignette/run/exporter.yaml \
  -cp '/opt/wsn-cxf/lib/*' org.apache.cxf.wsn.services.Service \
  -rootUrl http://0.0.0.0:8080/wsn -brokerUrl 'vm:(broker:()?persistent=false)' -jmxEnable true
