package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/store"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func key(t *testing.T, p Product) string {
	t.Helper()
	k, err := p.Key()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestTheKeyFollowsEverythingAProductIsMadeFrom(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/src/a", "1", 0o644)
	p := Product{Name: "p", Recipe: "1", Inputs: []string{dir + "/src"}}
	first := key(t, p)

	for name, change := range map[string]func(p *Product){
		"content":  func(*Product) { write(t, dir+"/src/a", "2", 0o644) },
		"mode":     func(*Product) { write(t, dir+"/src/a", "1", 0o755) },
		"new file": func(*Product) { write(t, dir+"/src/b", "", 0o644) },
		"recipe":   func(p *Product) { p.Recipe = "2" },
	} {
		t.Run(name, func(t *testing.T) {
			changed := p
			change(&changed)
			if key(t, changed) == first {
				t.Error("the key is the same")
			}
			_ = os.Remove(dir + "/src/b")
			write(t, dir+"/src/a", "1", 0o644)
			if key(t, p) != first {
				t.Error("the key does not come back with its inputs")
			}
		})
	}
}

func TestTheKeyDoesNotFollowWhereTheSourceLies(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write(t, one+"/a", "1", 0o644)
	write(t, two+"/a", "1", 0o644)
	if key(t, Product{Inputs: []string{one}}) != key(t, Product{Inputs: []string{two}}) {
		t.Error("the keys differ")
	}
}

func get(t *testing.T, c Cache, p Product) error {
	t.Helper()
	return c.get(t.Context(), new(progress.Handle), p)
}

func TestAProductIsMadeOnceAndAFailedOneLeavesNothing(t *testing.T) {
	c := Cache{Home: store.Home(t.TempDir())}
	calls := 0
	broken := errors.New("broken")
	p := Product{Name: "p", Make: func(_ context.Context, _ *progress.Handle, dir, _ string) error {
		calls++
		write(t, dir+"/half", "", 0o644)
		if calls == 1 {
			return broken
		}
		return nil
	}}
	if err := get(t, c, p); !errors.Is(err, broken) || c.Has(p) {
		t.Fatalf("error %v, there: %v", err, c.Has(p))
	}
	left, err := filepath.Glob(filepath.Join(c.Home.Build(), ".unfinished-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (error %v)", left, err)
	}
	for range 2 {
		if err := get(t, c, p); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 2 || !c.Has(p) {
		t.Errorf("%d calls, there: %v", calls, c.Has(p))
	}
}

func TestWhatAKilledBuildLeftIsRemoved(t *testing.T) {
	c := Cache{Home: store.Home(t.TempDir())}
	left := filepath.Join(c.Home.Build(), ".unfinished-p-123")
	write(t, left+"/half", "", 0o644)
	p := Product{Name: "p", Make: func(context.Context, *progress.Handle, string, string) error { return nil }}
	if err := get(t, c, p); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there (error %v)", err)
	}
}

func TestOfMultusOnlyTheDefinitionAndTheRoleAreApplied(t *testing.T) {
	manifest := "# note\n---\napiVersion: v1\nkind: CustomResourceDefinition\nspec: {kind: X}\n---\nkind: ClusterRole\na: 1\n---\nkind: ClusterRoleBinding\n---\nkind: DaemonSet\n"
	got := multusObjects(manifest)
	for text, want := range map[string]bool{"kind: CustomResourceDefinition": true, "kind: ClusterRole\n": true, "ClusterRoleBinding": false, "DaemonSet": false} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q: want %v in\n%s", text, want, got)
		}
	}
}
