package traffic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func publisher(phase v1alpha1.Phase) apps.Site {
	return apps.Site{
		App: v1alpha1.App{Name: "bft", Publisher: &v1alpha1.Publisher{
			Protocol: v1alpha1.ProtocolMQTT, Version: "5", QoS: 1, Topic: "/{country}/{unit}/{entity}/{node}/{app}/{instance}", Payload: "nffi", Period: "10s", Phase: phase}},
		Node: "prt", Group: "prt", Instances: []string{"prt/bft/1", "prt/bft/2"}, Seed: 7, Broker: apps.Server{Address: "nor:1883"}, FirstIndex: 2, TotalInstances: 4,
		Senders:      []apps.Sender{{Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S001"}, {Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S002"}},
		MetricsPorts: []int{9464, 0},
	}
}

func TestTheConfigurationOfAPublisher(t *testing.T) {
	got := Config(publisher(v1alpha1.PhaseSpread), 1)
	want := trafficconfig.Config{
		Instance: "prt/bft/2", Protocol: "mqtt", Version: "5", Broker: "nor:1883", Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S002",
		Seed:    apps.Seed(7, "instance", "prt/bft/2"),
		Publish: &trafficconfig.Publish{Topic: "/PRT/PRT-UNIT001/PRT-S002/prt/bft/2", QoS: 1, Payload: "nffi", PeriodSeconds: 10, FirstAfterSeconds: 8.75},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPhases(t *testing.T) {
	cases := map[string]struct {
		phase v1alpha1.Phase
		want  [2]float64
	}{
		"aligned publishers all send at once":                     {v1alpha1.PhaseAligned, [2]float64{0, 0}},
		"spread ones share the period through the experiment":     {v1alpha1.PhaseSpread, [2]float64{6.25, 8.75}},
		"random ones follow from the seed and their names":        {v1alpha1.PhaseRandom, [2]float64{10 * apps.Fraction(7, "phase", "prt/bft/1"), 10 * apps.Fraction(7, "phase", "prt/bft/2")}},
		"random is the default, as medians must not depend on it": {"", [2]float64{10 * apps.Fraction(7, "phase", "prt/bft/1"), 10 * apps.Fraction(7, "phase", "prt/bft/2")}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for i, want := range c.want {
				if got := Config(publisher(c.phase), i).Publish.FirstAfterSeconds; got != want {
					t.Errorf("instance %d starts after %v s, want %v", i, got, want)
				}
			}
		})
	}
}

func TestTheFirstOfSpreadPublishersDoesNotSendAtItsStart(t *testing.T) {
	site := publisher(v1alpha1.PhaseSpread)
	site.FirstIndex = 0
	if got := Config(site, 0).Publish.FirstAfterSeconds; got != 1.25 {
		t.Errorf("the first message goes out after %v s; want the middle of its share of the period, 1.25 s", got)
	}
}

func TestALeadComesBeforeThePhase(t *testing.T) {
	site := publisher(v1alpha1.PhaseSpread)
	site.App.Publisher.Lead = "5s"
	if got := Config(site, 0).Publish.FirstAfterSeconds; got != 11.25 {
		t.Errorf("the first message goes out after %v s; want 5 s of lead and 6.25 s of phase", got)
	}
}

func TestAPublisherRepeatsAtTheIntervalThatItsAppHas(t *testing.T) {
	site := publisher(v1alpha1.PhaseSpread)
	site.App.Publisher.Repeat = &v1alpha1.Repetition{Times: 2, Interval: "1500ms"}
	if got := Config(site, 0).Publish.Repeat; got == nil || *got != (trafficconfig.Repeat{Times: 2, IntervalSeconds: 1.5}) {
		t.Errorf("repeats %+v; want 2, one every 1.5 s", got)
	}
}

func TestSubscribersMayEachTakeTheirOwnTopic(t *testing.T) {
	site := apps.Site{
		App:  v1alpha1.App{Name: "subs", Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTT, Topics: []string{"e8/{instance}", "{node}/{app}/#"}}},
		Node: "client", Instances: []string{"client/subs/1", "client/subs/2"}, MetricsPorts: []int{9464, 0},
	}
	r := Kind{}.Render(site)
	want := [][]string{{"e8/1", "client/subs/#"}, {"e8/2", "client/subs/#"}}
	if diff := cmp.Diff(want, r.Subscriptions); diff != "" {
		t.Errorf("subscriptions of each (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1], Config(site, 1).Subscribe.Topics); diff != "" {
		t.Errorf("the second's configuration (-want +got):\n%s", diff)
	}
}

func TestASubscriberOverBroadcastListensToEverythingByDefault(t *testing.T) {
	site := apps.Site{
		App:  v1alpha1.App{Name: "sub", Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTTUDP, SignatureKey: "ours"}},
		Node: "prt", Instances: []string{"prt/sub"}, Broadcast: "198.18.9.255:1883", Interface: "wan", MetricsPorts: []int{9464},
	}
	r := Kind{}.Render(site)
	var got trafficconfig.Config
	if err := json.Unmarshal([]byte(r.Files[0].Content), &got); err != nil {
		t.Fatal(err)
	}
	want := trafficconfig.Config{Instance: "prt/sub", Protocol: "mqtt-udp", Broadcast: "198.18.9.255:1883", Interface: "wan", SignatureKey: "ours",
		Subscribe: &trafficconfig.Subscribe{Topics: []string{"#"}}, Seed: apps.Seed(0, "instance", "prt/sub"), MetricsPort: 9464}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"#"}}, r.Subscriptions); diff != "" || len(r.Topics) > 0 {
		t.Errorf("it has subscriptions %v and topics %v", r.Subscriptions, r.Topics)
	}
}
