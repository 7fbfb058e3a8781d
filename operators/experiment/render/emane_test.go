package render

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func emaneNetwork() *v1alpha1.RadioNetwork {
	n := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Name: "1234-vhf", Namespace: "vignette-system", UID: "5678", Labels: map[string]string{"a": "b"}}}
	n.Spec.Waveform.RFPipe = &v1alpha1.RFPipeModel{Rate: "175kbit", PHY: v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "250kHz"}}
	power := v1alpha1.Power("50W")
	n.Spec.Radios = []v1alpha1.Radio{{Nodes: []string{"hq"}, TransmitPower: &power}}
	n.Spec.Members = []v1alpha1.Member{{Node: "veh-1", NEM: 2, Address: "198.18.1.2/24"}, {Node: "hq", NEM: 1, Address: "198.18.1.1/24"}, {Node: "veh-2", NEM: 3, Address: "198.18.1.3/24"}}
	return n
}

func TestTheEMANEPodOfAHostIsAsItsGoldenFile(t *testing.T) {
	n := emaneNetwork()
	pod, files, err := EMANEPod(n, "host-a", n.Spec.Members, Options{EMANEImage: "r/emane:1", PullPolicy: corev1.PullIfNotPresent})
	if err != nil {
		t.Fatal(err)
	}
	objectsAre(t, "emane", pod, files)
}

func TestEveryNEMOfAnEMANEPodHasItsFilesAndAPortOfItsOwn(t *testing.T) {
	n := emaneNetwork()
	pod, files, err := EMANEPod(n, "host-a", n.Spec.Members, Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, item := range pod.Spec.Volumes[0].ConfigMap.Items {
		if keys[item.Path] != "" {
			t.Errorf("%s twice", item.Path)
		}
		keys[item.Path] = item.Key
	}
	for path, text := range map[string]string{"1/platform.xml": "127.0.0.1:47000", "2/platform.xml": "127.0.0.1:47001", "3/platform.xml": "nem3",
		"1/phy.xml": `"txpower" value="46.98`, "2/phy.xml": `"txpower" value="0"`, "3/mac.xml": "file:///etc/emane/pcr.xml", "pcr.xml": "<pcr>", "3/nem.xml": "<nem>"} {
		if !strings.Contains(files.Data[keys[path]], text) {
			t.Errorf("%s is\n%s\nwant %s in it", path, files.Data[keys[path]], text)
		}
	}
}

func TestPodsOfOneNetworkOnSeveralHostsHaveNamesOfTheirOwn(t *testing.T) {
	if a, b := EMANEPodName("n", "host-a"), EMANEPodName("n", "host-b"); a == b {
		t.Errorf("both are %s", a)
	}
}
