// Package images makes container images and brings them into a cluster's
// nodes, without a registry.
package images

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Archive describes an image of one static program in an otherwise empty root.
type Archive struct {
	Name    string
	Program string // path of the program on this machine; /bin/NAME in the image
	User    string
}

const (
	searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	epoch      = "1970-01-01T00:00:00Z"
)

// Write writes the image in Docker's archive format, the same bytes each time.
func (a Archive) Write(path string) error {
	layer, err := os.CreateTemp(filepath.Dir(path), ".layer-*")
	if err != nil {
		return err
	}
	defer os.Remove(layer.Name())
	defer layer.Close()
	digest, size, err := a.writeLayer(layer)
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": epoch,
		"config":  map[string]any{"Entrypoint": []string{"/bin/" + filepath.Base(a.Program)}, "Env": []string{searchPath}, "WorkingDir": "/", "User": a.User},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digest}},
		"history": []any{map[string]any{"created": epoch}},
	})
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]archiveManifest{{Config: configName, RepoTags: []string{a.Name}, Layers: []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	err = errors.Join(
		addFile(w, "manifest.json", int64(len(manifest)), strings.NewReader(string(manifest))),
		addFile(w, configName, int64(len(config)), strings.NewReader(string(config))),
		addFile(w, "layer.tar", size, layer),
		w.Close(), out.Close(),
	)
	return err
}

func (a Archive) writeLayer(out io.Writer) (digest string, size int64, err error) {
	program, err := os.Open(a.Program)
	if err != nil {
		return "", 0, err
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	counter := &countingWriter{}
	w := tar.NewWriter(io.MultiWriter(out, hash, counter))
	err = errors.Join(
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}),
		addFile(w, "etc/nsswitch.conf", 17, strings.NewReader("hosts: files dns\n")),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/" + filepath.Base(a.Program), Mode: 0o755, Size: info.Size()}),
	)
	if err != nil {
		return "", 0, err
	}
	if _, err := io.Copy(w, program); err != nil {
		return "", 0, err
	}
	if err := w.Close(); err != nil {
		return "", 0, err
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), counter.n, nil
}

func addFile(w *tar.Writer, name string, size int64, content io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}

type countingWriter struct{ n int64 }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

type archiveManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Identity is what an image is called and the digest of its configuration.
type Identity struct {
	Names []string
	ID    string // hexadecimal, without "sha256:"
}

// ReadIdentity reads what image a Docker archive holds.
func ReadIdentity(path string) (Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return Identity{}, err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if err == io.EOF {
			return Identity{}, fmt.Errorf("%s: no manifest.json: want an image archive as \"docker save\" writes it", path)
		}
		if err != nil {
			return Identity{}, fmt.Errorf("%s: %w", path, err)
		}
		if header.Name == "manifest.json" {
			return parseIdentity(r, path)
		}
	}
}

func parseIdentity(r io.Reader, path string) (Identity, error) {
	var manifests []archiveManifest
	if err := json.NewDecoder(r).Decode(&manifests); err != nil {
		return Identity{}, fmt.Errorf("%s: manifest.json: %w", path, err)
	}
	if len(manifests) != 1 {
		return Identity{}, fmt.Errorf("%s: %d images in one archive, want 1", path, len(manifests))
	}
	if len(manifests[0].RepoTags) == 0 {
		return Identity{}, fmt.Errorf("%s: the image has no name", path)
	}
	identity := Identity{ID: strings.TrimSuffix(filepath.Base(manifests[0].Config), ".json")}
	for _, name := range manifests[0].RepoTags {
		identity.Names = append(identity.Names, fullName(name))
	}
	return identity, nil
}

// fullName of an image, as containerd and the kubelet complete Docker's short names.
func fullName(name string) string {
	registry, _, inFolder := strings.Cut(name, "/")
	switch {
	case !inFolder:
		name = "docker.io/library/" + name
	case registry != "localhost" && !strings.ContainsAny(registry, ".:"):
		name = "docker.io/" + name
	}
	if !strings.ContainsAny(name[strings.LastIndexByte(name, '/'):], ":@") {
		name += ":latest"
	}
	return name
}
