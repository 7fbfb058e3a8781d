package testkube

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// templated matches lines that Helm fills in, such as labels.
var templated = regexp.MustCompile(`(?m)^.*{{.*}}\n`)

// ApplyPolicy applies a policy of the chart without the lines that Helm fills in, for one test. It may take a moment to be in force.
// Tests run two folders below the root of the repository.
func ApplyPolicy(t *testing.T, api client.Client, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "vignette", "templates", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(templated.ReplaceAllString(string(text), ""), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	}
}
