package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

const (
	clientCommand = "--config"
	// Clients are started ahead of T0. The drain is longer than any stop and any queue.
	ahead = 4 * time.Second
	drain = 8 * time.Second
)

// run is one run of a case, starved or not.
type run struct {
	*netCase
	*kind
	seed      int64
	directory string
	results   *runapi.Results
	figures   figures
}

func (r *run) path(node int, name string) string {
	return filepath.Join(r.directory, "logs", nodeName(node), appName, name)
}

// runTogether does runs of several cases at the same time, starved in the same way.
func runTogether(directory string, cases []*netCase, k *kind, seed int64) (runs []*run, err error) {
	var beds []*bed
	for _, c := range cases {
		r := &run{netCase: c, kind: k, seed: seed, directory: filepath.Join(directory, c.name)}
		b, bedErr := newBed(r.directory, c.radio(seed))
		runs, beds, err = append(runs, r), append(beds, b), errors.Join(err, bedErr)
	}
	// Multiframes of TDMA begin at whole seconds, so that runs of one seed have their messages at the same
	// places in them.
	t0 := time.Now().Add(ahead).Truncate(time.Second)
	for i, r := range runs {
		if err == nil {
			err = r.startClients(beds[i], t0)
		}
	}
	if err == nil {
		err = k.starve(beds, seed, t0)
		time.Sleep(time.Until(t0.Add(*duration + drain)))
	}
	for i, r := range runs {
		err = errors.Join(err, beds[i].stopClients(), r.write(t0))
	}
	time.Sleep(lastSamples)
	for _, b := range beds {
		err = errors.Join(err, b.stop())
	}
	return runs, err
}

func (r *run) startClients(b *bed, t0 time.Time) error {
	command := clientCommand
	if r.overTCP() {
		command = streamCommand
	}
	for i := range nodeCount {
		path := r.path(i, "config.json")
		environment := []string{fmt.Sprintf("%s=%d", appinstance.EnvStart, t0.UnixNano()), messagelog.EnvPath + "=" + r.path(i, "messages-1.jsonl")}
		if err := errors.Join(writeJSON(path, r.client(i, r.seed)), b.start(i, environment, command, path)); err != nil {
			return err
		}
	}
	return nil
}

// write writes the run's record, and agents' logs of clients that began on time.
func (r *run) write(t0 time.Time) error {
	err := writeJSON(filepath.Join(r.directory, "run.json"), r.plan(r.seed, t0))
	for i := range nodeCount {
		err = errors.Join(err, writeJSON(r.path(i, "agent.jsonl"),
			runapi.AgentEvent{Event: "started", Instance: nodeName(i) + "/" + appName, TimeNanoseconds: t0.UnixNano(), PlannedNanoseconds: t0.UnixNano()}))
	}
	return err
}

func writeJSON(path string, value any) error {
	text, err := json.Marshal(value)
	return errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, append(text, '\n'), 0o644)) //nolint:gosec // no secret
}
