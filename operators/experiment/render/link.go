package render

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkLink says what of a link's model contradicts itself.
func checkLink(l *v1alpha1.LinkModel, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	return checkLosses(l.LossCorrelation, l.GilbertElliott, path)
}

// checkPatch is checkLink of a change.
func checkPatch(l *v1alpha1.LinkPatch, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	return checkLosses(l.LossCorrelation, l.GilbertElliott, path)
}

func checkLosses(correlation *v1alpha1.Percent, bursts *v1alpha1.GilbertElliott, path *field.Path) field.ErrorList {
	if correlation == nil || bursts == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("lossCorrelation"), "is for loss; gilbertElliott has bursts of its own: give one of the two")}
}
