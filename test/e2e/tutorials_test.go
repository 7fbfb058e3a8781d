//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/tutorial"
)

// machineHeading begins the part of a tutorial that needs KubeVirt.
const machineHeading = "## 4. Put the sender into a virtual machine"

// developersImage is the image in the pages. Other clusters have it from their registry.
const developersImage = "localhost/vignette/analysis:dev"

// stepTimeout is longer than the longest step: a campaign on a loaded machine.
const stepTimeout = 15 * time.Minute

var (
	update       = flag.Bool("update", false, "write into the tutorials what their commands print, and their pictures")
	madeByAPage  = regexp.MustCompile(`(?m)^kubectl create namespace (\S+)$`)
	tutorialsDir = filepath.Join("..", "..", "docs", "tutorials")
)

// reader follows a tutorial, in its own directory and with its own kubeconfig.
type reader struct {
	dir string
	env []string
}

// newReader returns a reader of a page, whose namespaces do not exist yet.
func newReader(t *testing.T, page string) *reader {
	t.Helper()
	binary, err := buildVignette()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range madeByAPage.FindAllStringSubmatch(page, -1) {
		refuseNamespace(t, m[1])
		t.Cleanup(func() {
			_ = kube.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m[1]}}) // the next test reports leftovers
		})
	}
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, private); err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH")
	return &reader{t.TempDir(), append(os.Environ(), "KUBECONFIG="+private, "PATH="+path, "BROWSER=true", "REPOSITORY="+repository)}
}

// refuseNamespace fails the test if a namespace that it would delete exists, as it may be a user's.
func refuseNamespace(t *testing.T, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
		t.Fatalf("namespace %s exists (%v), and the tutorial creates it: delete it first", name, err)
	}
}

// run runs a step's commands, and returns their output.
func (r *reader) run(t *testing.T, step tutorial.Step) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", step.Text)
	c.Dir, c.Env, c.WaitDelay = r.dir, r.env, time.Second
	out, err := c.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("line %d: %v\n%s", step.Line, err, out)
	}
	if code := c.ProcessState.ExitCode(); code != step.ExitCode {
		t.Fatalf("line %d: exit code %d; want %d of:\n%s\nwhich printed:\n%s", step.Line, code, step.ExitCode, step.Text, out)
	}
	return string(out)
}

// follow follows a page from its first step to a heading, or to its end, and returns the directory with its files.
func follow(t *testing.T, name, heading string) string {
	t.Helper()
	file := filepath.Join(tutorialsDir, name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	end := len(page)
	if heading != "" {
		if end = strings.Index(page, "\n"+heading); end < 0 {
			t.Fatalf("%s has no heading %s", name, heading)
		}
	}
	steps, err := tutorial.Steps(page[:end])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	r := newReader(t, page)
	for _, step := range steps {
		switch {
		case step.File != "":
			text := strings.ReplaceAll(step.Text, developersImage, analysisImage(t))
			if err := os.WriteFile(filepath.Join(r.dir, step.File), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		case step.NotRun == "":
			printed := r.run(t, step)
			t.Logf("%s:%d\n%s\n%s", name, step.Line, step.Text, printed)
			if *update && step.Shown != "" {
				page = strings.Replace(page, "```text\n"+step.Shown+"```", "```text\n"+tutorial.Excerpt(step.Shown, printed)+"```", 1)
			} else if err := tutorial.Differs(step, printed); !*update && step.Shown != "" && err != nil {
				t.Errorf("%s:%d: %v", name, step.Line, err)
			}
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil { //nolint:gosec // public
			t.Fatal(err)
		}
	}
	return r.dir
}

func TestTheTutorialOfAFirstExperimentDoesWhatItSays(t *testing.T) {
	t.Parallel()
	dir := follow(t, "first-experiment.md", "")
	if *update {
		screenshot(t, filepath.Join(dir, "first-report.html"), "first-report.png")
	}
}

func TestTheTutorialOfMovingRadiosDoesWhatItSays(t *testing.T) {
	t.Parallel()
	dir := follow(t, "moving-radios.md", "")
	picture := filepath.Join("..", "..", "docs", "pictures", "patrol-map.svg")
	drawn, err := os.ReadFile(filepath.Join(dir, "map.svg"))
	if err == nil && *update {
		err = os.WriteFile(picture, drawn, 0o644) //nolint:gosec // public
	}
	if shown, readErr := os.ReadFile(picture); err != nil || readErr != nil || !bytes.Equal(shown, drawn) {
		t.Errorf("%s is not what the page's command draws (-update writes it): %v, %v", picture, err, readErr)
	}
}

func TestTheTutorialOfACampaignDoesWhatItSays(t *testing.T) {
	t.Parallel()
	follow(t, "campaign.md", "")
}

func TestTheTutorialOfAnOwnAppDoesWhatItSays(t *testing.T) {
	t.Parallel()
	follow(t, "own-app-and-vm.md", machineHeading)
}

// screenshot writes the first screen of a report as a picture of the documentation.
func screenshot(t *testing.T, page, name string) {
	t.Helper()
	out, err := filepath.Abs(filepath.Join("..", "..", "docs", "pictures", name))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,780", "--virtual-time-budget=5000",
		"--screenshot="+out, "file://"+page)
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("chromium (hack/test-packages installs it): %v\n%s", err, text)
	}
}
