// Package exificient lets tests hold EXI streams against EXIficient, the reference implementation.
package exificient

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"vignette.dev/vignette/internal/testjava"
)

// Run has EXIficient encode documents and decode streams, and returns what it made: schemaless, or schema-informed and strict with the path of a
// schema. The test is skipped without Java.
func Run(t *testing.T, documents, streams [][]byte, schema string) (encoded, decoded [][]byte) {
	t.Helper()
	_, source, _, _ := runtime.Caller(0)
	here := filepath.Dir(source)
	libraries, _ := testjava.Jars(t, filepath.Join(here, "pom.xml"))
	folder := t.TempDir()
	write(t, folder, "xml", documents)
	write(t, folder, "ours", streams)
	arguments := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", libraries, filepath.Join(here, "Exificient.java"), folder}
	if schema != "" {
		arguments = append(arguments, schema)
	}
	if out, err := exec.Command("java", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("EXIficient: %v\n%s", err, out)
	}
	return read(t, folder, "theirs", len(documents)), read(t, folder, "decoded", len(streams))
}

func path(folder string, i int, extension string) string {
	return filepath.Join(folder, fmt.Sprintf("%d.%s", i, extension))
}

func write(t *testing.T, folder, extension string, all [][]byte) {
	t.Helper()
	for i, data := range all {
		if err := os.WriteFile(path(folder, i, extension), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, folder, extension string, count int) (all [][]byte) {
	t.Helper()
	for i := range count {
		data, err := os.ReadFile(path(folder, i, extension))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}
