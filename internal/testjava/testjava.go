// Package testjava runs programs for Java, which tests hold our parts against.
package testjava

import (
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testtool"
)

// startTime is how long a program may take to say something.
const startTime = time.Minute

// Jars returns the class path of a pom.xml's libraries, and the folder they are in. It skips the test where Java or the jars are missing.
func Jars(t testing.TB, pom string) (classPath, folder string) {
	t.Helper()
	testtool.Need(t, "java", "javac")
	_, here, _, _ := runtime.Caller(0)
	out, err := exec.Command(filepath.Join(filepath.Dir(here), "../../hack/jars"), pom).Output()
	if err != nil {
		t.Skipf("the jars of %s cannot be fetched (hack/jars): %v", pom, err)
	}
	folder = filepath.Join(strings.TrimSpace(string(out)), "lib")
	return filepath.Join(folder, "*"), folder
}

// Compile compiles a source file, and returns the class path with its classes.
func Compile(t testing.TB, classPath, source string) string {
	t.Helper()
	classes := t.TempDir()
	if out, err := exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-d", classes, "-cp", classPath, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return classPath + ":" + classes
}

// Program is one that runs until the test ends.
type Program struct {
	t      testing.TB
	name   string
	input  io.Writer
	output *syncbuffer.Buffer
}

// Start starts a class with arguments.
func Start(t testing.TB, classPath, class string, arguments ...string) *Program {
	t.Helper()
	p := &Program{t: t, name: class, output: &syncbuffer.Buffer{}}
	java := exec.Command("java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", classPath, class}, arguments...)...)
	java.Stdout, java.Stderr = p.output, p.output
	input, err := java.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.input = input
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = java.Process.Kill()
		_ = java.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", class, p.output)
		}
	})
	return p
}

// Says waits until the program has said something.
func (p *Program) Says(want string) {
	p.t.Helper()
	for deadline := time.Now().Add(startTime); !strings.Contains(p.output.String(), want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s does not say %q", p.name, want)
		}
	}
}

// Step gives the program a line of input, and waits until it has said something.
func (p *Program) Step(line, want string) {
	p.t.Helper()
	p.Send(line)
	p.Says(want)
}

// Send gives the program a line of input.
func (p *Program) Send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}
