package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/mqttudp"
	mqttudpclient "vignette.dev/vignette/internal/traffic/mqttudp/client"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/file"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// publisherOf is an experiment with a publisher of a protocol and a payload, and its broker.
func publisherOf(t *testing.T, protocol, payload string) Input {
	t.Helper()
	to := "to: server, "
	if protocol == "mqtt-udp" {
		to = ""
	}
	return inputOf(t, fmt.Sprintf(`
  - {name: server, image: own, command: [b]}
  - {name: pub, publisher: {protocol: %s, %speriod: 1s, payload: "%s"}}`, protocol, to, payload), "[{name: hq, networks: [lan], apps: [server, pub]}]")
}

func TestPayloadsThatAProtocolDoesNotTakeAreRefusedByName(t *testing.T) {
	reference := v1alpha1.KeyReference{Name: "pictures", Key: "map.jpg"}
	for name, c := range map[string]struct {
		protocol, payload string
		fileBytes         int
		want              string
	}{
		"positions go anywhere":              {"mqtt-sn", "geojson", 0, ""},
		"tracks too":                         {"mqtt-udp", "nffi", 0, ""},
		"a file that is not known yet":       {"mqtt-sn", "file:pictures/map.jpg", 0, ""},
		"a file that fits":                   {"mqtt-sn", "file:pictures/map.jpg", 64_000, ""},
		"a file too large for a datagram":    {"mqtt-sn", "file:pictures/map.jpg", 65_000, "messages have 65064 bytes: use 65000 at most with mqtt-sn"},
		"the same by TCP":                    {"mqtt", "file:pictures/map.jpg", 65_000, ""},
		"an image too large for a datagram":  {"mqtt-udp", "image:65001", 0, "use 65000 at most with mqtt-udp"},
		"bytes too many for WS-Notification": {"ws-notification", "bytes:5000000", 0, "use 4194304 at most with ws-notification"},
		"bytes too many for XMPP":            {"xmpp", "bytes:16777217", 0, "use 16777216 at most with xmpp"},
		"as many as RabbitMQ takes":          {"amqp", "bytes:134217728", 0, ""},
		"one more than RabbitMQ takes":       {"stomp", "bytes:134217729", 0, "use 134217728 at most with stomp"},
	} {
		t.Run(name, func(t *testing.T) {
			in := publisherOf(t, c.protocol, c.payload)
			if c.fileBytes > 0 {
				in.FileBytes = map[v1alpha1.KeyReference]int{reference: c.fileBytes}
			}
			errs := CheckPayloads(in)
			if c.want == "" {
				if len(errs) > 0 {
					t.Error(errs.ToAggregate())
				}
				return
			}
			if len(errs) != 1 || errs[0].Field != "spec.apps[1].publisher.payload" || errs[0].BadValue != c.payload || !strings.Contains(errs[0].Detail, c.want) {
				t.Errorf("%v; want one error about the payload with %q", errs, c.want)
			}
		})
	}
}

func TestDatagramsHaveRoomForTheLargestPayloadAndALongTopic(t *testing.T) {
	// A topic has up to 256 characters in the spec, and some more when placeholders have become names.
	const topic, header = 480, 5
	if room := mqttudpclient.MaxDatagram - header - topic; mqttudp.Protocol.MaxPayloadBytes > room {
		t.Errorf("mqtt-udp takes up to %d; want %d at most", mqttudp.Protocol.MaxPayloadBytes, room)
	}
	if room := wire.MaxDatagram - wire.PublishHeader; mqttsn.Protocol.MaxPayloadBytes > room {
		t.Errorf("mqtt-sn takes up to %d; want %d at most", mqttsn.Protocol.MaxPayloadBytes, room)
	}
}

func TestAPayloadsFileIsMountedWhereTheProgramReadsIt(t *testing.T) {
	in := publisherOf(t, "mqtt", "file:pictures/map.jpg")
	in.Options.ServerURL, in.Experiment.UID = "http://server", "u1"
	pod := Pods(in)[0]
	container := pod.Spec.Containers[1]
	mount := container.VolumeMounts[slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/vignette/payload" })]
	volume := pod.Spec.Volumes[slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })]
	if volume.ConfigMap == nil || volume.ConfigMap.Name != "pictures" || volume.ConfigMap.Items[0].Key != "map.jpg" {
		t.Errorf("mount %+v of volume %+v; want the ConfigMap's key at /vignette/payload", mount, volume)
	}
	if config := configs(t, in)["hq/pub"]; !strings.Contains(fmt.Sprint(config.Files), `"payload":"file:/vignette/payload"`) {
		t.Errorf("files %v; want the payload's path in the configuration", config.Files)
	}
	keys := ConfigMapKeys(&in.Experiment.Spec)
	if len(keys) != 1 || keys[0].Name != "pictures" || keys[0].Key != "map.jpg" || keys[0].Text || keys[0].NamePath.String() != "spec.apps[1].publisher.payload" {
		t.Errorf("keys %+v; want one, which may be binary", keys)
	}
}

func TestTheLineBeforeAFileHasItsRoom(t *testing.T) {
	line := len("MECHANISEDBATTALIONOFONE-S999_9999999999 9999999999999\n")
	if _, err := payload.New("file:payloads_test.go", payload.Sender{}, 1); line > file.MaxLine || err != nil {
		t.Errorf("a line of %d bytes, of %d: %v", line, file.MaxLine, err)
	}
}

func TestAPublishersPayloadIsHadInItsEncodingOrRefused(t *testing.T) {
	for want, p := range map[string]v1alpha1.Publisher{
		"":                                {Payload: "nffi", Encoding: "exi", Compression: "gzip"},
		"want json or cbor":               {Encoding: "xml"},
		"for payload geojson or nffi":     {Payload: "bytes:100", Compression: "gzip"},
		"want xml, exi or exi-schemaless": {Payload: "nffi", Encoding: "json"},
	} {
		errs := CheckEncodings(&v1alpha1.ExperimentSpec{Apps: []v1alpha1.App{{Name: "bft", Publisher: &p}}})
		if got := fmt.Sprint(errs.ToAggregate()); (want == "") != (len(errs) == 0) || !strings.Contains(got, want) {
			t.Errorf("%+v: %s; want %q", p, got, want)
		}
	}
}
