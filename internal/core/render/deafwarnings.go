package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/streams"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// deafWarnings are about subscribers that no message of the experiment reaches, on any node.
func deafWarnings(in Input) (warnings field.ErrorList) {
	if !slices.ContainsFunc(in.Experiment.Spec.Apps, func(app v1alpha1.App) bool { return app.Subscriber != nil }) {
		return nil
	}
	hearing := hearingApps(in)
	for i, app := range in.Experiment.Spec.Apps {
		if app.Subscriber != nil && !hearing[app.Name] && len(in.Topology.NodesRunning(app.Name)) > 0 {
			path := field.NewPath("spec", "apps").Index(i).Child("subscriber", "topics")
			warnings = append(warnings, field.Invalid(path, app.Subscriber.Topics,
				"no publisher sends to such a topic at a broker that this app can hear: it receives nothing. Want a publisher's topic, or a way between their brokers"))
		}
	}
	return warnings
}

// hearingApps are those to which a publisher's messages go. Scripts and programs of the user's own may send to any topic.
func hearingApps(in Input) map[string]bool {
	sites, apps, hearing := MakeSites(in), map[string]string{}, map[string]bool{}
	var clients []streams.Client
	for _, node := range in.Topology.Nodes {
		for _, site := range sites[node.Name] {
			if site.App.Publisher == nil && site.App.Subscriber == nil && site.App.Script == nil && !site.App.Own() {
				continue
			}
			_, own := plannedApp(site)
			for _, c := range own {
				c.AnyTopic = c.AnyTopic || site.App.Script != nil
				clients, apps[c.Name] = append(clients, c), site.App.Name
			}
		}
	}
	for _, audience := range streams.Table(clients, plannedPassages(in, sites)).Audiences {
		for _, name := range audience {
			hearing[apps[name]] = true
		}
	}
	return hearing
}
