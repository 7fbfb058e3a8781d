package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestTheSourcesOfADockerfileAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		dockerfile string
		want       []string
	}{
		"several in one line": {"FROM scratch\nCOPY bin/a bin/b /bin/\n", []string{"bin/a", "bin/b"}},
		"flags":               {"COPY --chown=1:1 x /x", []string{"x"}},
		"from another stage":  {"COPY --from=build /out /out\nCOPY y /y", []string{"y"}},
		"continued line":      {"COPY a \\\n  b /c", []string{"a", "b"}},
		"JSON form":           {`COPY ["a b", "/c"]`, []string{"a b"}},
		"add, lower case":     {"add t.tar /", []string{"t.tar"}},
		"none":                {"FROM debian:bookworm-slim\nRUN echo COPY a b\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := copiedSources(test.dockerfile); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAMissingProgramIsNamedBeforeTheBuildStarts(t *testing.T) {
	r := Repository{Root: t.TempDir()}
	dockerfile := filepath.Join(r.Root, "Dockerfile")
	if err := os.WriteFile(dockerfile, []byte("FROM scratch\nCOPY bin/agent /agent\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.inputs(t.Context(), dockerfile); err == nil {
		t.Error("no error")
	}
}

func TestAnArchiveIsTheSameEachTimeAndSaysWhatItHolds(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "pause")
	if err := os.WriteFile(program, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := Archive{Name: "localhost/test/pause:1", Program: program}
	var texts []string
	for _, name := range []string{"1.tar", "2.tar"} {
		path := filepath.Join(dir, name)
		if err := image.Write(path); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
		identity, err := ReadIdentity(path)
		if err != nil || len(identity.ID) != 64 || !reflect.DeepEqual(identity.Names, []string{image.Name}) {
			t.Errorf("identity %+v, error %v", identity, err)
		}
	}
	if texts[0] != texts[1] {
		t.Error("two archives of one program differ")
	}
}

func TestShortNamesAreThoseThatContainerdGivesThem(t *testing.T) {
	for name, want := range map[string]string{
		"router:3":                    "docker.io/library/router:3",
		"lab/router:3":                "docker.io/lab/router:3",
		"lab/router":                  "docker.io/lab/router:latest",
		"localhost/lab/router:3":      "localhost/lab/router:3",
		"localhost:5000/router":       "localhost:5000/router:latest",
		"registry.example/a/b:1.2":    "registry.example/a/b:1.2",
		"registry.example/a@sha256:1": "registry.example/a@sha256:1",
	} {
		dir := t.TempDir()
		program, archive := filepath.Join(dir, "program"), filepath.Join(dir, "a.tar")
		if err := errors.Join(os.WriteFile(program, []byte("x"), 0o755), Archive{Name: name, Program: program}.Write(archive)); err != nil {
			t.Fatal(err)
		}
		if identity, err := ReadIdentity(archive); err != nil || !reflect.DeepEqual(identity.Names, []string{want}) {
			t.Errorf("%s: %+v, error %v; want %s", name, identity, err, want)
		}
	}
}

func FuzzReadIdentity(f *testing.F) {
	f.Add([]byte("not an archive"))
	for _, manifest := range []string{`[]`, `[{}]`, `[{"Config":"a.json","RepoTags":["b:1"]}]`} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := errors.Join(addFile(w, "manifest.json", int64(len(manifest)), strings.NewReader(manifest)), w.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if identity, err := ReadIdentity(path); err == nil && len(identity.Names) == 0 {
			t.Error("an image without a name was accepted")
		}
	})
}

const containerdListing = `REF                    TYPE      DIGEST     SIZE    PLATFORMS   LABELS
localhost/a:dev        manifest  sha256:m2  1.0 MiB linux/amd64 -
localhost/b:dev        manifest  sha256:m3  1.0 MiB linux/amd64 -
sha256:id1             manifest  sha256:m1  1.0 MiB linux/amd64 -
sha256:id2             manifest  sha256:m2  1.0 MiB linux/amd64 -
`

func TestANodeHasAnImageIfTheNameLeadsToThatID(t *testing.T) {
	list := parseListing(containerdListing)
	for name, test := range map[string]struct {
		image Identity
		want  bool
	}{
		"the very image":                  {Identity{Names: []string{"localhost/a:dev"}, ID: "id2"}, true},
		"an older one of that name":       {Identity{Names: []string{"localhost/a:dev"}, ID: "id1"}, false},
		"one that was never loaded":       {Identity{Names: []string{"localhost/c:dev"}, ID: "id9"}, false},
		"the id, but not under this name": {Identity{Names: []string{"localhost/b:dev"}, ID: "id2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := list.has(test.image); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAnImageThatLostItsNameIsAnOrphan(t *testing.T) {
	if got := parseListing(containerdListing).orphans(); !reflect.DeepEqual(got, []string{"sha256:id1"}) {
		t.Errorf("got %q", got)
	}
}
