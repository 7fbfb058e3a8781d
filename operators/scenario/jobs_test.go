package scenario

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestATenantsCompilationsDoNotBlockOthers(t *testing.T) {
	done := make(chan types.NamespacedName, 8)
	j := &jobs{onFinished: func(name types.NamespacedName) { done <- name }}
	long := func(ctx context.Context) compileResult {
		<-ctx.Done()
		return compileResult{}
	}
	for _, name := range []string{"a", "b", "c"} {
		j.start(types.NamespacedName{Namespace: "greedy", Name: name}, "", long)
	}
	modest := types.NamespacedName{Namespace: "modest", Name: "a"}
	j.start(modest, "", func(context.Context) compileResult { return compileResult{} })
	select {
	case name := <-done:
		if name != modest {
			t.Errorf("%s is done first", name)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for another tenant's compilations")
	}
}

func TestAForgottenJobLeavesItsSlotToTheNext(t *testing.T) {
	began := make(chan string, 8)
	j := &jobs{}
	start := func(name string) {
		j.start(types.NamespacedName{Namespace: "n", Name: name}, "", func(ctx context.Context) compileResult {
			began <- name
			<-ctx.Done()
			return compileResult{}
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
	j.forget(types.NamespacedName{Namespace: "n", Name: "second"})
	j.forget(types.NamespacedName{Namespace: "n", Name: "first"})
	next("third")
	j.forget(types.NamespacedName{Namespace: "n", Name: "third"})
	start("fourth")
	next("fourth")
}
