// Package radiodtest has networks and scenarios for the tests of radiod's packages.
package radiodtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// NetworkOf makes a RadioNetwork with one member per pod UID, NEM ids from 1.
func NetworkOf(uid, name string, podUIDs ...string) *v1alpha1.RadioNetwork {
	n := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: uid + "-" + name, UID: types.UID(uid + name)}}
	n.Spec = v1alpha1.RadioNetworkSpec{Experiment: v1alpha1.ExperimentReference{Namespace: "team", Name: "exp", UID: types.UID(uid)},
		Network: name, MTU: 1400, Waveform: v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Delay: "1ms", Loss: "0%", Limit: 1000}}}
	for i, pod := range podUIDs {
		n.Spec.Members = append(n.Spec.Members, v1alpha1.Member{Node: fmt.Sprintf("node-%d", i+1), Group: "all", NEM: int32(i + 1),
			MAC: fmt.Sprintf("02:02:00:00:00:%02x", i+1), Address: fmt.Sprintf("198.18.9.%d/24", i+1), Interface: name,
			PodUID: types.UID(pod), Primary: true})
	}
	return n
}

// Physical is a network of three nodes on platforms 1 to 3, with T0 at 1000 s.
func Physical(source v1alpha1.PathlossSource, changes ...v1alpha1.TimedRadioChange) *v1alpha1.RadioNetworkSpec {
	n := NetworkOf("run", "vhf", "pod-1", "pod-2", "pod-3")
	n.Spec.Waveform = RFPipe()
	n.Spec.Waveform.RFPipe.PHY.Pathloss = source
	n.Spec.T0 = &metav1.MicroTime{Time: time.Unix(1000, 0)}
	n.Spec.Changes = changes
	for i := range n.Spec.Members {
		n.Spec.Members[i].Platform = ptr.To(int32(i + 1))
	}
	return &n.Spec
}

// RFPipe gives nodes 1 Mbit/s at 0 dBm. With 1 MHz and a noise figure of 4 dB, more than 110 dB of pathloss
// is too much.
func RFPipe() v1alpha1.WaveformSpec {
	return v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{PHY: PHY(), Rate: "1Mbit", QueueDepth: 255}}
}

// PHY is the physical layer of RFPipe and TDMA.
func PHY() v1alpha1.PHY {
	return v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "1MHz", TransmitPower: "0dBm", AntennaGain: "0dBi", NoiseFigure: "4dB",
		Pathloss: v1alpha1.PathlossScenario, SubID: 1}
}

// TDMA gives each node a slot of 20 ms at 1 Mbit/s.
func TDMA() v1alpha1.WaveformSpec {
	return v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{PHY: PHY(), Rate: "1Mbit",
		Structure: v1alpha1.TDMAStructure{Frames: 1, SlotDuration: "20ms", SlotOverhead: "0ms"}}}
}

// Schedule of one frame of 20 ms slots, one for each of the given NEM ids. Node 1 listens in the first if it has none.
func Schedule(senders ...int) string {
	text := fmt.Sprintf(`<emane-tdma-schedule><structure frames="1" slots="%d" slotoverhead="0" slotduration="20000" bandwidth="1M"/>`+
		`<multiframe frequency="300M" power="0" class="0" datarate="1M"><frame index="0">`, len(senders))
	for slot, nem := range senders {
		text += fmt.Sprintf(`<slot index="%d" nodes="%d"/>`, slot, nem)
	}
	if !slices.Contains(senders, 1) {
		text += `<slot index="0" nodes="1"><rx/></slot>`
	}
	return text + `</frame></multiframe></emane-tdma-schedule>`
}

// Jam is a change of a jammer.
func Jam(at time.Duration, j v1alpha1.Jammer) v1alpha1.TimedRadioChange {
	return v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: v1alpha1.RadioChange{Jammer: &j}}
}

// Compile makes a scenario.
func Compile(t *testing.T, build func(b *scenario.Builder) error) (digest string, content []byte) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	defer b.Close()
	var text bytes.Buffer
	err := build(b)
	if err == nil {
		digest, err = b.Write(&text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return digest, text.Bytes()
}

// Loss is the pathloss of a pair of platforms, both ways, from a time on.
type Loss struct {
	At   time.Duration
	A, B int
	DB   float64
}

// LossAt is a Loss.
func LossAt(at time.Duration, a, b int, dB float64) Loss { return Loss{at, a, b, dB} }

// Losses makes a scenario of pathloss alone.
func Losses(t *testing.T, all ...Loss) (digest string, content []byte) {
	t.Helper()
	return Compile(t, func(b *scenario.Builder) error {
		for _, l := range all {
			if err := errors.Join(b.Pathloss(l.At, l.A, l.B, l.DB), b.Pathloss(l.At, l.B, l.A, l.DB)); err != nil {
				return err
			}
		}
		return nil
	})
}
