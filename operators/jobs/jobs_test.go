package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestATenantsJobsDoNotBlockOthers(t *testing.T) {
	done := make(chan types.NamespacedName, 8)
	j := &Jobs[int]{OnFinished: func(name types.NamespacedName) { done <- name }}
	long := func(ctx context.Context) int {
		<-ctx.Done()
		return 0
	}
	for _, name := range []string{"a", "b", "c"} {
		j.Begin(types.NamespacedName{Namespace: "greedy", Name: name}, "", long)
	}
	modest := types.NamespacedName{Namespace: "modest", Name: "a"}
	j.Begin(modest, "", func(context.Context) int { return 0 })
	select {
	case name := <-done:
		if name != modest {
			t.Errorf("%s is done first", name)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for another tenant's jobs")
	}
}

func TestAForgottenJobLeavesItsSlotToTheNext(t *testing.T) {
	began := make(chan string, 8)
	j := &Jobs[int]{}
	start := func(name string) {
		j.Begin(types.NamespacedName{Namespace: "n", Name: name}, "", func(ctx context.Context) int {
			began <- name
			<-ctx.Done()
			return 0
		})
	}
	next := func(want string) {
		t.Helper()
		select {
		case name := <-began:
			if name != want {
				t.Errorf("%s begins; want %s", name, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s does not start", want)
		}
	}
	start("first")
	next("first")
	start("second")
	start("third")
	j.Forget(types.NamespacedName{Namespace: "n", Name: "second"})
	j.Forget(types.NamespacedName{Namespace: "n", Name: "first"})
	next("third")
	j.Forget(types.NamespacedName{Namespace: "n", Name: "third"})
	start("fourth")
	next("fourth")
}

func TestAJobThatWasEndedHasNoResult(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	j := &Jobs[int]{context: ctx}
	name, began := types.NamespacedName{Namespace: "n", Name: "a"}, make(chan struct{})
	j.Begin(name, "inputs", func(ctx context.Context) int {
		close(began)
		<-ctx.Done()
		return 7
	})
	<-began
	stop()
	<-j.running[name].finished
	if out, complete := j.Result(name, "inputs"); complete {
		t.Errorf("its result is %d, though the manager stopped it", out)
	}
}

func TestNewInputsEndTheJobOfTheOld(t *testing.T) {
	var j Jobs[int]
	name := types.NamespacedName{Name: "a"}
	began, ended := make(chan struct{}), make(chan error, 1)
	j.Begin(name, "old", func(ctx context.Context) int {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return 0
	})
	<-began // otherwise the older would never start
	j.Begin(name, "new", func(context.Context) int { return 1 })
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the older ended with %v", err)
	}
	if _, finished := j.Result(name, "old"); finished {
		t.Error("the older has a result")
	}
}
