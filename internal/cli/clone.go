package cli

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"vignette.dev/vignette/internal/console"
	"vignette.dev/vignette/internal/core/origin"
	"vignette.dev/vignette/internal/runapi"
)

// CloneRun makes another experiment of a recorded run, as `vignette rerun` does. Its user may then change it.
// Inputs that are not the recorded ones are told and refuse nothing, as the user sees the clone before it runs.
// Errors of the API server and of the archive stay what they are, for the console to explain.
func CloneRun(ctx context.Context, config *rest.Config, platform, namespace, run string) (*console.Clone, error) {
	c, err := dial(ctx, config, namespace)
	if err != nil {
		return nil, err
	}
	return c.cloneRun(ctx, platform, run)
}

func (c *cluster) cloneRun(ctx context.Context, platform, run string) (*console.Clone, error) {
	r := &rerun{cluster: c, options: rerunOptions{images: imagesByDigest, allow: inputs}}
	if err := r.readRun(ctx, run); err != nil {
		return nil, err
	}
	if err := r.buildExperiment(ctx); err != nil {
		return nil, err
	}
	if err := r.applyChanges(); err != nil {
		return nil, err
	}
	r.compare(ctx, platform)
	text, err := r.unmarked()
	if err != nil {
		return nil, err
	}
	about := runapi.Rerun{Namespace: r.record.Namespace, Name: r.record.Name, UID: r.record.UID, Differences: r.differences}
	if _, err := origin.Mark(r.experiment, about, r.spec, r.spec); err != nil {
		return nil, err
	}
	mark := console.CloneMark{Namespace: about.Namespace, Name: about.Name, UID: about.UID, Annotations: r.experiment.Annotations}
	return &console.Clone{Text: string(text), Mark: mark, Notes: r.words()}, nil
}

// readRun reads the record of the run with a UID, or of the newest one of an experiment.
func (r *rerun) readRun(ctx context.Context, run string) error {
	runs, err := r.archive.Runs(ctx, r.namespace, "")
	if err != nil {
		return err
	}
	for _, archived := range runs { // the newest first
		if archived.UID != run && archived.Name != run {
			continue
		}
		r.source = "the archive's run.json of run " + archived.UID
		content, err := r.archive.File(ctx, archived.UID, runFile)
		if err != nil {
			return err
		}
		defer content.Close()
		text, err := io.ReadAll(content)
		if err == nil {
			r.record, err = runapi.ReadRunRecord(r.source, text)
		}
		return err
	}
	return fmt.Errorf("the archive has no run %s in namespace %s: a run can be cloned once it has begun", run, r.namespace)
}

// unmarked is the YAML of the objects, the scenario first, without what ties them to the run or to its namespace.
func (r *rerun) unmarked() ([]byte, error) {
	r.experiment.Namespace = ""
	if r.scenario != nil {
		r.scenario.Namespace = ""
	}
	return r.manifests(r.spec)
}

// words on what is not repeated, and on what differs.
func (r *rerun) words() []string {
	words := append([]string{}, r.notes...)
	for _, d := range r.differences {
		words = append(words, fmt.Sprintf("%s was %s then, and is %s now", d.What, d.Before, d.Now))
	}
	for _, unknown := range r.unknown {
		words = append(words, "not compared: "+unknown)
	}
	return words
}
