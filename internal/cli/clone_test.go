package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/core/origin"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestACloneHasTheSpecOfTheRunAndIsARerunOnceItIsMarked(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<10)
	c := a.cluster(hostNow())
	for _, run := range []string{"pair", recordedUID} {
		clone, err := c.cloneRun(t.Context(), platformNamespace, run)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(clone.Text, "annotations:") || clone.Mark.UID != recordedUID {
			t.Errorf("clone of %s, run %s:\n%s\nwant no mark in the text", run, clone.Mark.UID, clone.Text)
		}
		if words := strings.Join(clone.Notes, "\n"); !strings.Contains(words, "host n1: kernel was 6.1.0-18-amd64 then, and is 6.1.0-30-amd64 now") {
			t.Errorf("notes:\n%s\nwant the difference of the host", words)
		}
		objects, err := validateFile("clone.yaml", []byte(clone.Text), os.Stderr, hasNone)
		if err != nil {
			t.Fatalf("%v\n%s", err, clone.Text)
		}
		objects[0].SetName("clone-of-" + run[:4])
		objects[0].SetLabels(map[string]string{v1alpha1.LabelRerunOf: clone.Mark.UID})
		objects[0].SetAnnotations(clone.Mark.Annotations)
		if _, err := c.submit(t.Context(), objects, io.Discard); err != nil {
			t.Fatal(err)
		}
		if rerunOf, basedOn := origin.Of(created(t, c, "clone-of-"+run[:4])); rerunOf == nil || basedOn != nil {
			t.Errorf("a rerun of %+v, based on %+v; want a rerun", rerunOf, basedOn)
		}
	}
}

func TestACloneOfNoRunSaysSo(t *testing.T) {
	if _, err := newRealArchive(t).cluster().cloneRun(t.Context(), platformNamespace, "nobody"); err == nil || !strings.Contains(err.Error(), "the archive has no run nobody in namespace team-nor") {
		t.Errorf("%v", err)
	}
}
