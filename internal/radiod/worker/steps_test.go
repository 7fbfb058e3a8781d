package worker

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestAStepThatFellDueWithoutAWorkerIsLate(t *testing.T) {
	const due, longer = 5 * time.Second, 300 * time.Millisecond
	r, p := newRadiod(t), newEMANEPod(t)
	p.appear(t)
	_, connect := startPlane(t)
	next := func() (*Manager, *recorder) {
		m, held := managerOn(t, r.parent, r.directory, connect(dataplane.ProcessOptions{StateDirectory: r.directory}))
		return m, restored(t, p.manager(m), held)
	}
	first, _ := next()
	var server radiodtest.ScenarioStore
	digest, content := radiodtest.Losses(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(due, 1, 2, 90))
	server.Put(digest, content)
	first.Networks.Scenarios = &server
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() { _ = first.FetchScenarios(ctx) }()
	beating := make(chan error)
	go func() { beating <- first.WriteHeartbeat(ctx) }()
	native, ofEMANE := networkOf("run", "vhf", "pod-1", "pod-2"), configuredRadios(emaneNetwork("pod-a", "pod-b"))
	native.Spec.Waveform = radiodtest.RFPipe()
	ofEMANE.Spec.Waveform.RFPipe.PHY.Pathloss = v1alpha1.PathlossScenario
	p.play(t, ofEMANE)
	all := []*v1alpha1.RadioNetwork{native, ofEMANE}
	for _, n := range all {
		n.Spec.Scenario = digest
		for i := range n.Spec.Members {
			n.Spec.Members[i].Platform, n.Spec.Members[i].Position = ptr.To(int32(i+1)), nil
		}
		attachAll(t, first, n, string(n.Spec.Members[0].PodUID), string(n.Spec.Members[1].PodUID))
	}
	for _, n := range all {
		within(t, "its radios work", func() bool {
			attached, message, _ := statusOf(first, string(n.UID))
			return attached == 2 && message == ""
		})
	}
	t0 := time.Now()
	for _, n := range all {
		alter(t, first, n, func(n *v1alpha1.RadioNetwork) { n.Spec.T0 = &metav1.MicroTime{Time: t0} })
	}
	end()
	if err := <-beating; err != nil {
		t.Fatal(err)
	}
	first.Close()
	if now := time.Since(t0); now > due-2*time.Second {
		t.Skipf("the machine is too busy: the first worker ended %v after T0, and may have handed over the step", now)
	}
	time.Sleep(time.Until(t0.Add(due + longer)))
	second, results := next()
	for _, n := range all {
		within(t, "the step is late", func() bool {
			for _, c := range second.Counters(false) {
				if c.UID == string(n.UID) {
					return c.Steps == 1 && c.LateSteps == 1 && c.WorstStepLateness >= longer
				}
			}
			return false
		})
	}
	if len(results.gaps) > 0 {
		t.Errorf("gaps %+v; want none, as the data plane and EMANE went on", results.gaps)
	}
}
