package updates

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// runningPoll is the time between two polls without a feed.
const runningPoll = 2 * time.Second

// fakeUpdates returns the given answers, one after the other.
type fakeUpdates chan func() (runapi.Updates, error)

func (p fakeUpdates) Updates(ctx context.Context, _ string, _ int64) (runapi.Updates, error) {
	select {
	case answer := <-p:
		return answer()
	case <-ctx.Done():
		return runapi.Updates{}, ctx.Err()
	}
}

func (p fakeUpdates) send(epoch string, sequence int64, runs ...string) {
	p <- func() (runapi.Updates, error) {
		return runapi.Updates{Epoch: epoch, Sequence: sequence, Runs: runs}, nil
	}
}

func anExperiment(name string) *v1alpha1.Experiment {
	return &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: name, UID: types.UID("uid-" + name)}}
}

func startFeed(t *testing.T) (*Feed, fakeUpdates) {
	t.Helper()
	source := make(fakeUpdates)
	f := New(source, time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f, source
}

// woken is the next experiment that the feed wakes.
func woken(t *testing.T, f *Feed) string {
	t.Helper()
	select {
	case e := <-f.Wakeups:
		return e.Object.GetName()
	case <-time.After(time.Minute):
		t.Fatal("the feed wakes nobody")
		return ""
	}
}

func TestAnExperimentIsWokenByUpdatesAndPollsSeldom(t *testing.T) {
	f, source := startFeed(t)
	if poll := f.PollAfter(anExperiment("one"), runningPoll); poll != runningPoll {
		t.Errorf("before the server has answered an experiment polls every %s; want %s", poll, runningPoll)
	}
	f.PollAfter(anExperiment("two"), runningPoll)
	source.send("a", 1)
	if first, second := woken(t, f), woken(t, f); first == second {
		t.Fatalf("a new epoch of the server wakes %q and %q; want both", first, second)
	}
	if poll := f.PollAfter(anExperiment("one"), runningPoll); poll != scope.ResyncInterval {
		t.Errorf("while the feed works it polls every %s; want %s", poll, scope.ResyncInterval)
	}
	source.send("a", 2, "uid-two", "uid-of-another-operator")
	if name := woken(t, f); name != "two" {
		t.Errorf("an update of two wakes %q", name)
	}
	source.send("a", 3, "uid-one")
	if name := woken(t, f); name != "one" {
		t.Errorf("after it %q is woken; want one, by the next update", name)
	}
}

func TestAfterTheLossOfTheServerEachExperimentPollsAtOnce(t *testing.T) {
	f, source := startFeed(t)
	source.send("a", 1)
	for f.PollAfter(anExperiment("one"), runningPoll) != scope.ResyncInterval {
		time.Sleep(time.Millisecond)
	}
	source.send("a", 2) // taken once the first answer has woken everybody
	for len(f.Wakeups) > 0 {
		<-f.Wakeups
	}
	source <- func() (runapi.Updates, error) { return runapi.Updates{}, errors.New("connection refused") }
	if name := woken(t, f); name != "one" {
		t.Errorf("the loss wakes %q; want one", name)
	}
	if poll := f.PollAfter(anExperiment("one"), runningPoll); poll != runningPoll {
		t.Errorf("without the server an experiment polls every %s; want %s", poll, runningPoll)
	}
}

func TestASilentServerIsTrustedForAWhileOnly(t *testing.T) {
	now := time.Now()
	f := New(nil, func() time.Time { return now })
	f.deliver(context.Background(), runapi.Updates{Epoch: "a"}, true)
	now = now.Add(updatesValidFor)
	if poll := f.PollAfter(anExperiment("one"), runningPoll); poll != scope.ResyncInterval {
		t.Errorf("after %s it polls every %s; want %s", updatesValidFor, poll, scope.ResyncInterval)
	}
	now = now.Add(time.Second)
	if poll := f.PollAfter(anExperiment("one"), runningPoll); poll != runningPoll {
		t.Errorf("after more than %s it polls every %s; want %s", updatesValidFor, poll, runningPoll)
	}
}

func TestAFollowerThatHasLongBeenSilentIsForgotten(t *testing.T) {
	now := time.Now()
	f := New(nil, func() time.Time { return now })
	f.PollAfter(anExperiment("old"), runningPoll)
	now = now.Add(followerLifetime + time.Second)
	f.PollAfter(anExperiment("new"), runningPoll)
	if names := f.followers(nil, true); len(names) != 1 || names[0].Name != "new" || len(f.byUID) != 1 {
		t.Errorf("followers are %v", names)
	}
}
