package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload/file"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// filesOf are an app's own files and the one of its messages.
func filesOf(app v1alpha1.App) []v1alpha1.AppFile {
	if reference := payloadReference(app); reference != nil {
		return []v1alpha1.AppFile{{Path: apps.PayloadFile, ConfigMap: reference}}
	}
	return app.Files
}

// payloadReference is the key of a ConfigMap with the content of a publisher's messages, nil for none.
func payloadReference(app v1alpha1.App) *v1alpha1.KeyReference {
	if app.Publisher == nil {
		return nil
	}
	place, isFile := strings.CutPrefix(app.Publisher.Payload, "file:")
	name, key, whole := strings.Cut(place, "/")
	if !isFile || !whole {
		return nil
	}
	return &v1alpha1.KeyReference{Name: name, Key: key}
}

// CheckEncodings finds publishers whose payload cannot be had in their encoding or compression.
func CheckEncodings(spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	for i, app := range spec.Apps {
		p := app.Publisher
		if p == nil || p.Encoding == "" && (p.Compression == "" || p.Compression == v1alpha1.CompressionNone) {
			continue
		}
		path := field.NewPath("spec", "apps").Index(i).Child("publisher")
		kind := cmp.Or(p.Payload, encoding.GeoJSON)
		if p.Pattern != nil || !slices.Contains(encoding.Models(), kind) {
			errs = append(errs, field.Forbidden(path, "encoding and compression are for payload geojson or nffi: other messages have one form"))
			continue
		}
		used := cmp.Or(string(p.Encoding), encoding.Encodings(kind)[0])
		if err := encoding.Check(kind, used, string(p.Compression)); err != nil {
			errs = append(errs, field.Invalid(path.Child("encoding"), used, plainWords(err)))
		}
	}
	return errs
}

// CheckPayloads finds publishers whose messages are larger than their protocol allows, as far as sizes are known. Those of
// patterns are checked with the patterns.
func CheckPayloads(in Input) (errs field.ErrorList) {
	for i, app := range in.Experiment.Spec.Apps {
		size, known := payloadBytes(in, app)
		if !known {
			continue
		}
		at := field.NewPath("spec", "apps").Index(i).Child("publisher", "payload")
		if most := trafficconfig.ProtocolOf(app.Publisher.Protocol).MaxPayloadBytes; size > most {
			errs = append(errs, field.Invalid(at, app.Publisher.Payload, fmt.Sprintf("messages have %d bytes: use %d at most with %s", size, most, app.Publisher.Protocol)))
		}
	}
	return errs
}

// payloadBytes is the size of a publisher's largest message, if the user has set it. Others are small.
func payloadBytes(in Input, app v1alpha1.App) (size int, known bool) {
	if app.Publisher == nil {
		return 0, false
	}
	if reference := payloadReference(app); reference != nil {
		size, known = in.FileBytes[*reference]
		return size + file.MaxLine, known
	}
	kind, count, _ := strings.Cut(app.Publisher.Payload, ":")
	if kind != "bytes" && kind != "image" {
		return 0, false
	}
	size, err := strconv.Atoi(count)
	return size, err == nil
}
