package mapdata

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// lostByLinks are the reasons for which the link model drops a frame of its sender.
var lostByLinks = []radio.Reason{radio.Loss, radio.QueueFull, radio.Silent}

// passage counts a sender's frames over some samples.
type passage struct {
	sent, lost           uint64 // by the last sample
	newlySent, newlyLost uint64
	known                bool
}

func (p *passage) add(sample *runapi.RadioSample) {
	lost := uint64(0)
	for _, reason := range lostByLinks {
		lost += sample.Drops[reason.String()]
	}
	if p.known && sample.FramesSent >= p.sent && lost >= p.lost { // else the counters began again
		p.newlySent += sample.FramesSent - p.sent
		p.newlyLost += lost - p.lost
	}
	p.sent, p.lost, p.known = sample.FramesSent, lost, true
}

// share of the frames that was not lost; nil without frames.
func (p *passage) share() *float64 {
	if p == nil || p.newlySent == 0 {
		return nil
	}
	share := round(1-float64(min(p.newlyLost, p.newlySent))/float64(p.newlySent), 1e3)
	return &share
}

// linksWithoutRadios are those of all pairs of a network's members. The link model counts by sender only.
func linksWithoutRadios(spec *v1alpha1.RadioNetworkSpec, samples []runapi.RadioSample) []Link {
	passages := map[string]*passage{}
	for i := range samples {
		if samples[i].Network != spec.Network {
			continue
		}
		if passages[samples[i].Node] == nil {
			passages[samples[i].Node] = &passage{}
		}
		passages[samples[i].Node].add(&samples[i])
	}
	links := []Link{}
	for i := range spec.Members {
		for k := range spec.Members {
			if i != k {
				links = append(links, Link{From: spec.Members[i].Node, To: spec.Members[k].Node, Delivered: passages[spec.Members[i].Node].share()})
			}
		}
	}
	return links
}
