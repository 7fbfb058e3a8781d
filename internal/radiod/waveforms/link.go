package waveforms

import (
	"cmp"
	"slices"

	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// links is the waveform link.
type links struct {
	fixed dataplane.LinkModel
	dataplane.Links
}

func newLinks(spec *v1alpha1.RadioNetworkSpec) *links {
	w := &links{fixed: dataplane.LinkModel{Seed: spec.Seed, Effects: spec.CommEffects}}
	if spec.Waveform.Link != nil {
		w.Default = linkParameters(spec.Waveform.Link)
	}
	for i := range spec.Links {
		l := &spec.Links[i]
		w.Links.Links = append(w.Links.Links, link.Link{From: l.From, To: l.To, Parameters: linkParameters(&l.LinkModel)})
	}
	return w
}

func (w *links) model(n *dataplane.Network) { n.Link = &w.fixed }

func (w *links) apply(change *v1alpha1.RadioChange) {
	if change.Link != nil {
		patch(w.link(cmp.Or(change.From, link.Everybody), cmp.Or(change.To, link.Everybody)), change.Link)
	}
}

// link returns the link that a change is for. A new link begins with the network's own parameters.
func (w *links) link(from, to string) *link.Parameters {
	all := &w.Links.Links
	i := slices.IndexFunc(*all, func(l link.Link) bool { return l.From == from && l.To == to })
	switch {
	case i >= 0:
	case from == link.Everybody && to == link.Everybody:
		return &w.Default
	default:
		i = len(*all)
		*all = append(*all, link.Link{From: from, To: to, Parameters: w.Default})
	}
	return &(*all)[i].Parameters
}

func (w *links) state(s *dataplane.State) {
	s.Links = &dataplane.Links{Default: w.Default, Links: slices.Clone(w.Links.Links)}
}

// linkParameters converts a link of the API.
func linkParameters(l *v1alpha1.LinkModel) link.Parameters {
	p := link.Parameters{Delay: l.Delay.Std(), Jitter: l.Jitter.Std(), Distribution: distributions[l.JitterDistribution],
		JitterCorrelation: share(l.JitterCorrelation), LossCorrelation: share(l.LossCorrelation), Corrupt: share(l.Corrupt), Reorder: l.Reorder, Loss: l.Loss.Fraction(), Duplicate: l.Duplicate.Fraction(), Limit: int(l.Limit)}
	if l.Rate != nil {
		p.RateBitsPerSecond = l.Rate.BitsPerSecond()
	}
	if l.GilbertElliott != nil {
		p.GilbertElliott = gilbertElliott(l.GilbertElliott)
	}
	if l.LimitBytes != nil {
		p.LimitBytes = *l.LimitBytes
	}
	return p
}

// distributions of jitter by the API's names.
var distributions = map[v1alpha1.JitterDistribution]link.Distribution{v1alpha1.JitterUniform: link.Uniform, v1alpha1.JitterNormal: link.Normal,
	v1alpha1.JitterPareto: link.Pareto, v1alpha1.JitterParetoNormal: link.ParetoNormal}

// share returns the fraction, 0 for nil.
func share(p *v1alpha1.Percent) float64 {
	if p == nil {
		return 0
	}
	return p.Fraction()
}

func gilbertElliott(g *v1alpha1.GilbertElliott) *link.GilbertElliott {
	return &link.GilbertElliott{GoodToBad: g.GoodToBad.Fraction(), BadToGood: g.BadToGood.Fraction(),
		LossInGood: g.LossInGood.Fraction(), LossInBad: cmp.Or(g.LossInBad, "100%").Fraction()}
}

// patch replaces the parameters that the patch gives.
func patch(p *link.Parameters, l *v1alpha1.LinkPatch) {
	if l.Rate != nil {
		p.RateBitsPerSecond = l.Rate.BitsPerSecond()
	}
	if l.Delay != nil {
		p.Delay = l.Delay.Std()
	}
	if l.Jitter != nil {
		p.Jitter = l.Jitter.Std()
	}
	if l.JitterDistribution != nil {
		p.Distribution = distributions[*l.JitterDistribution]
	}
	if l.JitterCorrelation != nil {
		p.JitterCorrelation = l.JitterCorrelation.Fraction()
	}
	if l.Reorder != nil {
		p.Reorder = *l.Reorder
	}
	if l.Loss != nil {
		p.Loss, p.GilbertElliott = l.Loss.Fraction(), nil
	}
	if l.LossCorrelation != nil {
		p.LossCorrelation = l.LossCorrelation.Fraction()
	}
	if l.GilbertElliott != nil {
		p.Loss, p.GilbertElliott = 0, gilbertElliott(l.GilbertElliott)
	}
	if l.Duplicate != nil {
		p.Duplicate = l.Duplicate.Fraction()
	}
	if l.Corrupt != nil {
		p.Corrupt = l.Corrupt.Fraction()
	}
	if l.Limit != nil {
		p.Limit = int(*l.Limit)
	}
	if l.LimitBytes != nil {
		p.LimitBytes = *l.LimitBytes
	}
}
