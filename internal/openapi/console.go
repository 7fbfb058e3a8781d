package openapi

import (
	"vignette.dev/vignette/internal/capacity"
	"vignette.dev/vignette/internal/console"
	"vignette.dev/vignette/internal/console/mapdata"
	"vignette.dev/vignette/internal/validate"
)

const yamlType = "application/yaml"

// Console is the API of the web console's own paths (package console).
func Console() API {
	at := Parameter{Name: "at", Type: "number", Description: "Seconds after T0, or after the scenario's start."}
	namespace := Parameter{Name: "namespace", Description: "The namespace for what names none."}
	return API{
		Title:       "vignette console",
		Description: "What the web console's page gets from its own program. Everything else comes from Kubernetes' API, below /k8s.",
		Server:      "/console",
		PathParameters: map[string]string{
			"namespace": "The run's namespace.",
			"uid":       "UID of the Experiment.",
			"run":       "UID of a run, or the name of its experiment for the newest.",
			"path":      "Path of a file of the library, with slashes.",
		},
		Problem:    console.Error{},
		WholeLists: true,
		Operations: []Operation{
			{Route: "GET /v1/session", ID: "getSession", Callers: byUsers, Summary: "Read who the user is", Answer: console.Session{}},
			{Route: "GET /v1/capacity", ID: "getCapacity", Callers: byUsers, Summary: "Read what vignette capacity prints", Answer: capacity.Report{}, Query: []Parameter{namespace}},
			{Route: "POST /v1/validate", ID: "validate", Callers: byUsers, Summary: "Judge objects as vignette validate does", BodyTypes: []string{yamlType}, Answer: validate.Summary{}, Query: []Parameter{namespace}},
			{Route: "POST /v1/forecast", ID: "forecast", Callers: byUsers, Summary: "Say what an experiment or campaign takes, and when it would start", BodyTypes: []string{yamlType}, Answer: console.Forecast{},
				Query: []Parameter{{Name: "namespace", Description: "The namespace in which it would run; without it the cluster is not asked."}}},
			{Route: "GET /v1/namespaces/{namespace}/runs/{run}/clone", ID: "cloneRun", Callers: byUsers, Summary: "Make another experiment of a recorded run, as vignette rerun does", Answer: console.Clone{}},
			{Route: "GET /v1/library", ID: "listLibrary", Callers: byUsers, Summary: "List the scenarios that the program has", Answer: []console.LibraryEntry{}},
			{Route: "GET /v1/library/{path...}", ID: "readLibrary", Callers: byUsers, Summary: "Read one of them", AnswerTypes: []string{yamlType}},
			{Route: "GET /v1/namespaces/{namespace}/runs/{uid}/map", ID: "getMap", Callers: byUsers, Summary: "Read where nodes are, jammers and radio silence", Answer: mapdata.Map{}},
			{Route: "GET /v1/namespaces/{namespace}/runs/{uid}/links", ID: "getLinks", Callers: byUsers, Summary: "Read the links of a network at a time, now without one", Answer: mapdata.Links{},
				Query: []Parameter{{Name: "network", Required: true, Description: "The network."}, at,
					{Name: "hopsFrom", Description: "Node from which hops are counted; one with a broker without it."},
					{Name: "expected", Type: "boolean", Description: "Also links on which nothing was received, but whose link budget would do."}}},
			{Route: "GET /v1/background", ID: "getBackground", Callers: byUsers, Summary: "Read ranges of the PMTiles file that maps show below all", AnswerTypes: []string{"application/vnd.pmtiles"}},
			{Route: "POST /v1/scenario/preview", ID: "previewScenario", Callers: byUsers, Summary: "Compile a Scenario as vignette scenario inspect does", BodyTypes: []string{yamlType}, Answer: mapdata.ScenarioPreview{},
				Query: []Parameter{at, {Name: "limit", Type: "number", Description: "Pathloss in dB up to which two platforms are neighbours."},
					{Name: "from", Type: "integer", Description: "Platform from which the pathloss over time is wanted."},
					{Name: "to", Type: "integer", Description: "Platform to which it is wanted."}}},
		},
		Sources: []string{"internal/console", "internal/capacity", "internal/validate", "internal/runapi", "operators/api/v1alpha1"},
	}
}
