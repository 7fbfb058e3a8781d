package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"vignette.dev/vignette/internal/validate"
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
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxListBytes+1))
	if err != nil {
		return err
	}
	if len(text) > maxListBytes {
		return Errorf(http.StatusRequestEntityTooLarge, "they have more than %d MiB", maxListBytes>>20)
	}
	return json.Unmarshal(text, into)
}

// maxErrorBytes are read of an answer that is an error.
const maxErrorBytes = 4 << 10

// messageOf an answer that is an error: Kubernetes' Status, an error of the archive, or the words of HTTP.
func messageOf(answer *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorBytes)) // what came is enough
	var told struct{ Message, Error string }
	if json.Unmarshal(text, &told) == nil && told.Message+told.Error != "" {
		return cmp.Or(told.Message, told.Error)
	}
	return fmt.Sprintf("the API server answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
}

// missed is the warning about objects that could not be read; none for those that are absent, or that the user may not read.
func (k *surroundings) missed(what string, err error) []validate.Finding {
	var answer *Error
	why := "the API server gave no answer that can be used"
	if errors.As(err, &answer) {
		if answer.Status == http.StatusForbidden || answer.Status == http.StatusNotFound {
			return nil
		}
		why = answer.Message
	}
	if k.namespace == "" || err == nil {
		return nil
	}
	return []validate.Finding{{File: validatedFile, Warning: true, Message: "the cluster's " + what + " could not be read, so names of them are not checked: " + why}}
}

// named returns the cluster's objects whose names are in a text, and warnings about what could not be read.
// Objects that the user may not read count as absent.
func (k *surroundings) named(ctx context.Context, text []byte) (found []*unstructured.Unstructured, warnings []validate.Finding) {
	words := wordsOf(string(text))
	base := "/apis/" + v1alpha1.GroupVersion.String()
	for _, one := range []struct{ path, kind string }{
		{"/waveforms", "Waveform"}, {"/namespaces/" + k.namespace + "/scenarios", "Scenario"}, {"/namespaces/" + k.namespace + "/nodetemplates", "NodeTemplate"},
	} {
		kind := one.kind
		var list unstructured.UnstructuredList
		if err := k.read(ctx, base+one.path, wholeObjects, &list); err != nil {
			warnings = append(warnings, k.missed(kind+"s", err)...)
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
	configMaps, missed := k.configMaps(ctx, found, words)
	return append(found, configMaps...), append(warnings, missed...)
}

// withoutStatus leaves what a file would have.
func withoutStatus(object *unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return object
}

// configMaps that a text, or an object that it names, mentions.
func (k *surroundings) configMaps(ctx context.Context, objects []*unstructured.Unstructured, words map[string]bool) (found []*unstructured.Unstructured, warnings []validate.Finding) {
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
	if err := k.read(ctx, path, onlyMetadata, &names); err != nil {
		return nil, k.missed("ConfigMaps", err)
	}
	for _, item := range names.Items {
		if !words[item.Metadata.Name] || len(found) == maxConfigMaps {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := k.read(ctx, path+"/"+item.Metadata.Name, wholeObjects, &object.Object); err != nil {
			warnings = append(warnings, k.missed("ConfigMap "+item.Metadata.Name, err)...)
			continue
		}
		found = append(found, withoutStatus(object))
	}
	return found, warnings
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
