//go:build e2e

package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// shiftTolerance is for two links' delays. The link model promises 2 ms a frame, and MQTT with a broker on the receiver's
// node crosses the link once. The difference between the links is larger than a busy machine's usual delays.
const shiftTolerance = 0.004

func TestTheShiftBetweenTwoLinksIsTheDifferenceOfTheirDelays(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	var runs []*v1alpha1.Experiment
	for name, delay := range map[string]v1alpha1.Duration{"near": "5ms", "far": "205ms"} {
		e := pair(namespace, name).Obj()
		e.Spec.Networks[0].Waveform, e.Spec.Networks[0].Link = "", &v1alpha1.LinkModel{Delay: delay}
		e.Spec.Apps[2].Publisher.Period = "100ms"
		mustCreate(t, e)
		runs = append(runs, e)
	}
	for _, e := range runs {
		waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	}
	var compared struct {
		Runs   []struct{ Label string }
		Groups []struct {
			Name        string
			Differences []struct {
				From, To string
				Delay    struct {
					ShiftSeconds  struct{ Estimate, Low, High float64 }
					CliffsDelta   struct{ Estimate float64 }
					BrunnerMunzel struct{ PHolm float64 }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(mustVignette(t, namespace, "compare", "near", "far", "-o", "json")), &compared); err != nil {
		t.Fatal(err)
	}
	if len(compared.Runs) != 2 || compared.Runs[0].Label != "delay=5ms" || compared.Runs[1].Label != "delay=205ms" {
		t.Errorf("labels %+v; want the delays, which are all that differs", compared.Runs)
	}
	for _, group := range compared.Groups {
		if group.Name != "cross" {
			continue
		}
		d := group.Differences[0].Delay
		t.Logf("shift %+v, delta %v, p %v", d.ShiftSeconds, d.CliffsDelta.Estimate, d.BrunnerMunzel.PHolm)
		if math.Abs(d.ShiftSeconds.Estimate-0.200) > shiftTolerance || d.CliffsDelta.Estimate < 0.9 || d.BrunnerMunzel.PHolm > 0.001 {
			t.Errorf("between nodes: %+v; want a shift of 200 ms, and hardly a delay of the shorter link above one of the longer", d)
		}
	}
	if out := mustVignette(t, namespace, "compare", "near", "far", "-o", "html"); !strings.Contains(out, "Differences<") || !strings.Contains(out, "cross") || !strings.Contains(out, "<svg") {
		t.Errorf("the page lacks the differences or the plot:\n%.500s", out)
	}
	published := filepath.Join(t.TempDir(), "published.csv")
	if err := os.WriteFile(published, []byte("run,group,metric,value,note\ndelay=5ms,cross,medianSeconds,0.001,made up\nfra,cross,sent,1,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := vignette(t, namespace, "", "compare", "near", "far", "--reference", published); code != 1 || !strings.Contains(errs, `published.csv, row 3, column run: "fra" is unknown: did you mean far?`) {
		t.Errorf("an unknown run: exit code %d, %s%s", code, out, errs)
	}
	if err := os.WriteFile(published, []byte("run,group,metric,value,note\ndelay=5ms,cross,medianSeconds,0.001,made up\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := mustVignette(t, namespace, "compare", "near", "far", "--reference", published); !strings.Contains(out, "Reference figures: published.csv") || !strings.Contains(out, "NOT covered") {
		t.Errorf("the table lacks the reference figure, which the interval does not cover:\n%s", out)
	}
	if out, errs, code := vignette(t, namespace, "", "compare", "near", "far", "--by", "colour"); code != 1 || !strings.Contains(errs, "no field of that name differs") {
		t.Errorf("--by colour: exit code %d, %s%s", code, out, errs)
	}
}
