package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// surroundings read what a text's objects may name, as the user.
type surroundings struct {
	user      *User
	namespace string
}

// newSurroundings of a namespace; without one it reads nothing of any.
func newSurroundings(user *User, namespace string) (*surroundings, error) {
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, Errorf(http.StatusBadRequest, "namespace %q: want the name of a namespace, such as team-nor", namespace)
	}
	return &surroundings{user, namespace}, nil
}

const (
	// maxListBytes are read of a list.
	maxListBytes = 64 << 20
	// maxConfigMaps are read for a text.
	maxConfigMaps = 50
)

// The forms in which objects are read: lists of ConfigMaps would be large.
const (
	wholeObjects = "application/json"
	onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// read a path of the API server into an object.
func (k *surroundings) read(ctx context.Context, path, form string, into any) error {
	if k.namespace == "" {
		return Errorf(http.StatusBadRequest, "no namespace is named")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.user.Server.JoinPath(path).String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", form)
	answer, err := k.user.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Errorf(answer.StatusCode, "%s", messageOf(answer))
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxListBytes)).Decode(into)
}

// named returns the cluster's objects whose names are in a text. What the user may not read is as good as absent.
func (k *surroundings) named(ctx context.Context, text []byte) (found []*unstructured.Unstructured) {
	words := wordsOf(string(text))
	base := "/apis/" + v1alpha1.GroupVersion.String()
	for path, kind := range map[string]string{
		base + "/waveforms": "Waveform", base + "/namespaces/" + k.namespace + "/scenarios": "Scenario", base + "/namespaces/" + k.namespace + "/nodetemplates": "NodeTemplate",
	} {
		var list unstructured.UnstructuredList
		if k.read(ctx, path, wholeObjects, &list) != nil {
			continue
		}
		for i := range list.Items {
			if item := &list.Items[i]; words[item.GetName()] {
				item.SetAPIVersion(v1alpha1.GroupVersion.String())
				item.SetKind(kind)
				found = append(found, withoutStatus(item))
			}
		}
	}
	return append(found, k.configMaps(ctx, found, words)...)
}

// withoutStatus leaves what a file would have.
func withoutStatus(object *unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return object
}

// configMaps that a text, or an object that it names, mentions.
func (k *surroundings) configMaps(ctx context.Context, objects []*unstructured.Unstructured, words map[string]bool) (found []*unstructured.Unstructured) {
	for _, object := range objects {
		collect(object.Object, words)
	}
	var names struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	path := "/api/v1/namespaces/" + k.namespace + "/configmaps"
	if k.read(ctx, path, onlyMetadata, &names) != nil {
		return nil
	}
	for _, item := range names.Items {
		if !words[item.Metadata.Name] || len(found) == maxConfigMaps {
			continue
		}
		object := &unstructured.Unstructured{}
		if k.read(ctx, path+"/"+item.Metadata.Name, wholeObjects, &object.Object) == nil {
			found = append(found, withoutStatus(object))
		}
	}
	return found
}

// collect all strings in a value.
func collect(value any, words map[string]bool) {
	switch v := value.(type) {
	case string:
		words[v] = true
	case []any:
		for _, item := range v {
			collect(item, words)
		}
	case map[string]any:
		for _, item := range v {
			collect(item, words)
		}
	}
}

// wordsOf a text that can be names of objects.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLower(r) && !unicode.IsDigit(r) && r != '-' && r != '.' }) {
		words[strings.Trim(word, "-.")] = true
	}
	return words
}
