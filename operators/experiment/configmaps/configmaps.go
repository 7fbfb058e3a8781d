// Package configmaps reads what apps use from ConfigMaps, with the versions for the run record.
package configmaps

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Read reads ConfigMaps from the API server, as the kubelet does for the nodes.
func Read(ctx context.Context, live client.Reader, s *scope.Scope, addFinding func(string, *field.Error)) (found []runapi.PlannedConfigMap, err error) {
	read := map[string]*corev1.ConfigMap{}
	for _, key := range render.ConfigMapKeys(&s.Experiment.Spec) {
		object, known := read[key.Name]
		if !known {
			object = &corev1.ConfigMap{}
			err := live.Get(ctx, types.NamespacedName{Namespace: s.Experiment.Namespace, Name: key.Name}, object)
			if apierrors.IsNotFound(err) {
				object = nil
			} else if err != nil {
				return nil, err
			}
			read[key.Name] = object
		}
		if object == nil {
			addFinding(scope.ReasonConfigMapNotFound, field.NotFound(key.NamePath, key.Name))
			continue
		}
		content, ok := contentOf(object, key)
		if !ok {
			missing := field.NotFound(key.KeyPath, key.Key)
			missing.Detail = "ConfigMap " + key.Name + " has " + keysOf(object)
			addFinding(scope.ReasonKeyNotFound, missing)
			continue
		}
		if s.FileBytes != nil {
			s.FileBytes[key.KeyReference] = len(content)
		}
		if s.Contents != nil {
			s.Contents[key.KeyReference] = content
		}
		if key.Text && s.Scripts != nil {
			s.Scripts[key.KeyReference] = string(content)
		}
		sum := sha256.Sum256(content)
		found = append(found, runapi.PlannedConfigMap{Name: key.Name, Key: key.Key, ResourceVersion: object.ResourceVersion, SHA256: hex.EncodeToString(sum[:])})
	}
	return found, nil
}

// keysOf names the keys of a ConfigMap.
func keysOf(object *corev1.ConfigMap) string {
	keys := slices.Sorted(maps.Keys(object.Data))
	for _, key := range slices.Sorted(maps.Keys(object.BinaryData)) {
		keys = append(keys, key+" (binary)")
	}
	return cmp.Or(wording.Some(keys, min(len(keys), 8)), "no keys")
}

// contentOf returns the content of a key. A variable or script cannot be binary data.
func contentOf(object *corev1.ConfigMap, key render.ConfigMapKey) ([]byte, bool) {
	if text, ok := object.Data[key.Key]; ok {
		return []byte(text), true
	}
	binary, ok := object.BinaryData[key.Key]
	return binary, ok && !key.Text
}

// Changed names the keys whose content has changed.
func Changed(before, now []runapi.PlannedConfigMap) (changed []string) {
	for _, old := range before {
		same := slices.ContainsFunc(now, func(c runapi.PlannedConfigMap) bool {
			return c.Name == old.Name && c.Key == old.Key && c.SHA256 == old.SHA256
		})
		if !same {
			changed = append(changed, "key "+old.Key+" of ConfigMap "+old.Name)
		}
	}
	return changed
}
