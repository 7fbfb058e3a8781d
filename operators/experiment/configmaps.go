package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
)

// recheckInterval is the time until a missing ConfigMap, Secret or claim is looked for again, as users wait for it.
const recheckInterval = 5 * time.Second

// resolveConfigMaps reads the content that apps use from ConfigMaps. Only the kubelet reads Secrets.
func (r *Reconciler) resolveConfigMaps(ctx context.Context, s *scope) error {
	s.scripts, s.fileBytes = map[v1alpha1.KeyReference]string{}, map[v1alpha1.KeyReference]int{}
	if usesVMs(s.experiment) {
		s.contents = map[v1alpha1.KeyReference][]byte{}
	}
	found, err := r.readConfigMaps(ctx, s, s.addFinding)
	s.configMaps = found
	return err
}

// readConfigMaps reads ConfigMaps from the API server, as the kubelet does for the nodes.
func (r *Reconciler) readConfigMaps(ctx context.Context, s *scope, addFinding func(string, *field.Error)) (found []runapi.PlannedConfigMap, err error) {
	read := map[string]*corev1.ConfigMap{}
	for _, key := range render.ConfigMapKeys(&s.experiment.Spec) {
		object, known := read[key.Name]
		if !known {
			object = &corev1.ConfigMap{}
			err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.experiment.Namespace, Name: key.Name}, object)
			if apierrors.IsNotFound(err) {
				object = nil
			} else if err != nil {
				return nil, err
			}
			read[key.Name] = object
		}
		if object == nil {
			addFinding(ReasonConfigMapNotFound, field.NotFound(key.NamePath, key.Name))
			continue
		}
		content, ok := contentOf(object, key)
		if !ok {
			addFinding(ReasonKeyNotFound, field.NotFound(key.KeyPath, key.Key))
			continue
		}
		if s.fileBytes != nil {
			s.fileBytes[key.KeyReference] = len(content)
		}
		if s.contents != nil {
			s.contents[key.KeyReference] = content
		}
		if key.Text && s.scripts != nil {
			s.scripts[key.KeyReference] = string(content)
		}
		sum := sha256.Sum256(content)
		found = append(found, runapi.PlannedConfigMap{Name: key.Name, Key: key.Key, ResourceVersion: object.ResourceVersion, SHA256: hex.EncodeToString(sum[:])})
	}
	return found, nil
}

// contentOf returns the content of a key. A variable or script cannot be binary data.
func contentOf(object *corev1.ConfigMap, key render.ConfigMapKey) ([]byte, bool) {
	if text, ok := object.Data[key.Key]; ok {
		return []byte(text), true
	}
	binary, ok := object.BinaryData[key.Key]
	return binary, ok && !key.Text
}

// changedConfigMaps names the keys whose content has changed.
func changedConfigMaps(before, now []runapi.PlannedConfigMap) (changed []string) {
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

// releasedConfigMaps are the versions from before the first node was released, as far as the server has them.
func (r *Reconciler) releasedConfigMaps(ctx context.Context, s *scope) ([]runapi.PlannedConfigMap, error) {
	if len(s.configMaps) == 0 || !r.anyReleased(s.pods) {
		return s.configMaps, nil
	}
	state, err := r.Runs.State(ctx, string(s.experiment.UID))
	if client.IsNotFound(err) {
		return s.configMaps, nil
	}
	return state.Plan.ConfigMaps, err
}

// checkConfigMapsUnchanged fails a run if a ConfigMap changed between the release of the first node and the readiness of
// the last, because nodes may then have different contents.
func (r *Reconciler) checkConfigMapsUnchanged(ctx context.Context, s *scope, given []runapi.PlannedConfigMap) error {
	if len(given) == 0 {
		return nil
	}
	now, err := r.readConfigMaps(ctx, s, func(string, *field.Error) {})
	if err != nil {
		return err
	}
	if changed := changedConfigMaps(given, now); len(changed) > 0 {
		s.fail(ReasonReferenceLost, "%s was changed while the nodes were starting: nodes may have different contents", someOf(changed, "keys"))
	}
	return nil
}
