package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkLink finds contradictions in a link's model.
func checkLink(l *v1alpha1.LinkModel, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	return checkLosses(l.LossCorrelation, l.GilbertElliott, path)
}

// checkPatch finds contradictions in a change of a link.
func checkPatch(l *v1alpha1.LinkPatch, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	return checkLosses(l.LossCorrelation, l.GilbertElliott, path)
}

// checkCommEffects checks whether a network can use the comm effects of a scenario.
func checkCommEffects(spec *v1alpha1.ExperimentSpec, network v1alpha1.Network, path *field.Path) (errs field.ErrorList) {
	if !network.CommEffects {
		return nil
	}
	if spec.Scenario == nil {
		errs = append(errs, field.Required(field.NewPath("spec", "scenario"), fmt.Sprintf("network %s takes comm effects from a scenario: name one", network.Name)))
	}
	if network.RFPipe != nil || network.TDMA != nil {
		errs = append(errs, field.Forbidden(path.Child("commEffects"), "is for the link model: radios use pathloss"))
	}
	for part, given := range map[string]bool{"links": len(network.Links) > 0, "base": len(network.Base) > 0} {
		if given {
			errs = append(errs, field.Forbidden(path.Child(part), "with commEffects each pair of nodes has a link of its own: leave it out"))
		}
	}
	return errs
}

func checkLosses(correlation *v1alpha1.Percent, bursts *v1alpha1.GilbertElliott, path *field.Path) field.ErrorList {
	if correlation == nil || bursts == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("lossCorrelation"), "is for loss; gilbertElliott has bursts of its own: give one of the two")}
}

// linkWarnings are about correlations of what a link does not have, and no change of the timeline brings.
func linkWarnings(spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec) (warnings field.ErrorList) {
	warn := func(path *field.Path, waveform, of string, correlation *v1alpha1.Percent, there bool) {
		if correlation == nil || correlation.Fraction() == 0 || there {
			return
		}
		why := fmt.Sprintf("there is no %s that it could correlate: give %[1]s too, here or in a change", of)
		if waveform != "" {
			warnings = append(warnings, field.Invalid(path, waveform, fmt.Sprintf("its link.%sCorrelation is %s: %s", of, *correlation, why)))
			return
		}
		warnings = append(warnings, field.Invalid(path.Child(of+"Correlation"), *correlation, why))
	}
	for i, network := range spec.Networks {
		jitterLater, lossLater := false, false
		for _, entry := range spec.Timeline {
			for _, change := range entry.Set {
				if change.Network == network.Name && change.Link != nil {
					jitterLater, lossLater = jitterLater || change.Link.Jitter != nil, lossLater || change.Link.Loss != nil
				}
			}
		}
		check := func(l *v1alpha1.LinkModel, waveform string, path *field.Path) {
			warn(path, waveform, "jitter", l.JitterCorrelation, jitterLater || l.Jitter.Std() > 0)
			warn(path, waveform, "loss", l.LossCorrelation, lossLater || l.Loss.Fraction() > 0)
		}
		path := field.NewPath("spec", "networks").Index(i)
		switch named := waveforms[network.Name].Link; {
		case network.CommEffects: // a scenario's comm effects have jitter and loss
		case network.Link != nil:
			check(network.Link, "", path.Child("link"))
		case network.Waveform != "" && named != nil:
			check(named, network.Waveform, path.Child("waveform"))
		}
		for k := range network.Links {
			check(&network.Links[k].LinkModel, "", path.Child("links").Index(k))
		}
	}
	return warnings
}
