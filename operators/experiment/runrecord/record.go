// Package runrecord writes what the server keeps of a run: its plan, and the hosts and images that it ran on.
package runrecord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Runs is the part of the server's API that the controller uses.
type Runs interface {
	PutPlan(ctx context.Context, plan runapi.Plan) (runapi.State, error)
	State(ctx context.Context, uid string) (runapi.State, error)
	Incident(ctx context.Context, uid string, incident runapi.Incident) error
	Seal(ctx context.Context, uid string, request runapi.SealRequest) (runapi.Manifest, error)
	Delete(ctx context.Context, uid string) error
}

// Record is what the server keeps of a run.
type Record struct {
	Runs
	Objects *objects.Objects
	// Version is the operator's version.
	Version string
	// KubernetesVersion returns the API server's version. It may be nil.
	KubernetesVersion func() (string, error)
}

// Put sends the server a plan, unless the server has it already. If none of its pods has started yet, what the server has
// of earlier pods of its nodes is deleted, as their reports and logs would pass for those of the plan's pods.
func (r *Record) Put(ctx context.Context, plan runapi.Plan, started bool) error {
	state, err := r.State(ctx, plan.UID)
	if err != nil && !runs.IsNotFound(err) {
		return err
	}
	if err == nil && Same(state.Plan, plan) {
		return nil
	}
	if !started && state.Plan.T0 == nil && podsReplaced(state.Plan.Nodes, plan.Nodes) {
		if err := r.Delete(ctx, plan.UID); err != nil {
			return err
		}
	}
	_, err = r.PutPlan(ctx, plan)
	return err
}

// podsReplaced reports whether a node has another pod now, or is gone with its pod.
func podsReplaced(before, now []runapi.PlannedNode) bool {
	pods := map[string]string{}
	for _, node := range now {
		pods[node.Name] = node.PodUID
	}
	return slices.ContainsFunc(before, func(n runapi.PlannedNode) bool { return n.PodUID != "" && pods[n.Name] != n.PodUID })
}

// ArchiveFullMessage is the server's message if its archive is full, empty for another error.
func ArchiveFullMessage(err error) string {
	if answer, ok := errors.AsType[*runs.Error](err); ok && answer.Status == http.StatusInsufficientStorage {
		return answer.Message
	}
	return ""
}

// Same compares plans as sent: nil and empty are equal where JSON omits both.
func Same(a, b runapi.Plan) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Load returns the server's state of the run. If the server has lost the run's record, the run fails.
func (r *Record) Load(ctx context.Context, s *scope.Scope) (runapi.State, error) {
	state, err := r.State(ctx, string(s.Experiment.UID))
	switch {
	case runs.IsNotFound(err):
		s.FailUnrecoverably(scope.ReasonRunRecordLost, "the server has no record of this run any more: its archive was lost or deleted")
	case err != nil && s.Failure() == nil:
		s.Experiment.Status.Message = Waiting(err)
	}
	return state, err
}

// Waiting is the message of a run that waits after an error of the server. Without an answer it is always the same, because
// each change of the status makes a reconciliation.
func Waiting(err error) string {
	var answer *runs.Error
	if errors.As(err, &answer) {
		return scope.Shorten("trying again, as the " + answer.Error())
	}
	return "the server does not answer; trying again"
}
