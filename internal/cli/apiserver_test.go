package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const ownWaveform = `
---
apiVersion: vignette.dev/v1alpha1
kind: Waveform
metadata: {name: my-own}
spec: {link: {rate: 64kbit}}
`

func TestCommandsAgainstARealAPIServer(t *testing.T) {
	config := testkube.Start(t)
	target := &target{platform: "vignette-system"}
	c, err := dial(t.Context(), config, "default")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../scenarios/quickstart/experiment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := validateFile("experiment.yaml", append(text, ownWaveform...), os.Stderr, hasNone)
	if err != nil {
		t.Fatal(err)
	}
	experiments, err := c.submit(t.Context(), objects, io.Discard)
	if err != nil || len(experiments) != 1 || experiments[0].UID == "" {
		t.Fatalf("submit: %v, %v", experiments, err)
	}
	var waveform v1alpha1.Waveform
	if err := c.kube.Get(t.Context(), client.ObjectKey{Name: "my-own"}, &waveform); err != nil {
		t.Errorf("the waveform beside the experiment: %v", err)
	}
	var out bytes.Buffer
	if err := c.stop(t.Context(), "quickstart", &out); err != nil {
		t.Fatal(err)
	}
	var stopped v1alpha1.Experiment
	if err := c.kube.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "quickstart"}, &stopped); err != nil || !stopped.Spec.Stop {
		t.Errorf("after stop: spec.stop %v, %v", stopped.Spec.Stop, err)
	}
	if err := c.list(t.Context(), &out); err != nil || !strings.Contains(out.String(), "quickstart   Submitted") {
		t.Errorf("list: %v\n%s", err, out.String())
	}
	t.Run("toolbox", func(t *testing.T) { toolboxIsBrought(t, c) })
	t.Run("set", func(t *testing.T) { changesAreAdmitted(t, c) })
	t.Run("campaign", func(t *testing.T) { runSaysWhatBecameOfACampaign(t, c) })
	elsewhere, err := dial(t.Context(), config, "nowhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		object.SetNamespace("")
		object.SetResourceVersion("")
		object.SetUID("")
	}
	if _, err := elsewhere.submit(t.Context(), objects[:1], io.Discard); err == nil || !strings.Contains(err.Error(), "there is no namespace nowhere: kubectl create namespace nowhere") {
		t.Errorf("run in a namespace that does not exist: %v; want how to make it", err)
	}
	err = target.explainArchive(c.results(t.Context(), "quickstart", resultsOptions{output: "table"}, &out, &out))
	if err == nil || !strings.Contains(err.Error(), "is the platform installed? kubectl get apiservice v1alpha1.results.vignette.dev") {
		t.Errorf("results without a platform: %v; want a hint", err)
	}
	t.Logf("without a platform: %v", err)
}

// runSaysWhatBecameOfACampaign submits a campaign three times, beside an operator that has always seen it already.
func runSaysWhatBecameOfACampaign(t *testing.T, c *cluster) {
	text, err := os.ReadFile("testdata/campaign.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ repeats, want string }{
		{"repeats: 2", "campaign default/try created\n"},
		{"repeats: 2", "campaign default/try is there already, and the same\n"},
		{"repeats: 3", "campaign default/try changed\n"},
	} {
		changed := strings.Replace(string(text), "repeats: 2", step.repeats, 1)
		objects, err := validateFile("campaign.yaml", []byte(changed), os.Stderr, hasNone)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		campaigns, err := c.submitCampaigns(t.Context(), objects, &out)
		if err != nil || out.String() != step.want {
			t.Fatalf("%s: %q, %v; want %q", step.repeats, out.String(), err, step.want)
		}
		campaigns[0].Status.ObservedGeneration = campaigns[0].Generation + 1 // of the next submission
		if err := c.kube.Status().Update(t.Context(), campaigns[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// changesAreAdmitted has the API server judge what `set` makes of its keys.
func changesAreAdmitted(t *testing.T, c *cluster) {
	for name, made := range map[string]struct{ model, from, arguments, want string }{
		"a link":                  {v1alpha1.ModelLink, "hq", "rate=9.6kbit delay=1ms gilbertElliott=1%,25%", ""},
		"one radio":               {v1alpha1.ModelRFPipe, "hq", "rate=9.6kbit frequency=300MHz transmitPower=5W antennaGain=-2dBi noiseFigure=4dB transmit=false", ""},
		"all radios, and a place": {v1alpha1.ModelRFPipe, "", "delay=1ms jitter=1ms silent=true jammer=noise,power=100W,latitude=58.19,longitude=-7.98", ""},
		"slots, and a pathloss":   {v1alpha1.ModelTDMA, "", "schedule=@slots.xml rate=1Mbit jammer=noise,power=20dBm,pathloss=90,frequency=1GHz,bandwidth=1MHz", ""},
		"no jammer any more":      {v1alpha1.ModelTDMA, "", "jammer=noise,off", ""},
		"loss of a link":          {v1alpha1.ModelLink, "", "loss=101%", "loss=101%: must be a percentage"},
		"delay of radios":         {v1alpha1.ModelRFPipe, "", "delay=1", "delay=1: must be a duration with its unit"},
		"rate of radios":          {v1alpha1.ModelRFPipe, "", "rate=fast", "rate=fast: must be a rate above zero"},
		"name of a jammer":        {v1alpha1.ModelRFPipe, "", "jammer=" + strings.Repeat("x", 25) + ",off", "jammer=xxxxxxxxxxxxxxxxxxxxxxxxx,off: Too long"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := parseWish("vhf", made.from, "", strings.Fields(made.arguments))
			if err != nil {
				t.Fatal(err)
			}
			change, err := w.as(made.model)
			if err != nil {
				t.Fatal(err)
			}
			live := &v1alpha1.LiveChange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "vhf-"}}
			live.Spec = v1alpha1.LiveChangeSpec{Experiment: "vhf", Changes: []v1alpha1.RadioChange{change}}
			err = c.kube.Create(t.Context(), live)
			if made.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(explainChange(err, w.arguments()).Error(), made.want) {
				t.Errorf("%v; want %s", err, made.want)
			}
		})
	}
}
