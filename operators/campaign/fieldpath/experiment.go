package fieldpath

import (
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/crds"
)

// Experiment is the schema of an experiment's spec.
var Experiment = sync.OnceValue(func() *Schema {
	text, err := crds.Files.ReadFile("vignette.dev_experiments.yaml")
	var definition apiextensionsv1.CustomResourceDefinition
	if err == nil {
		err = yaml.Unmarshal(text, &definition)
	}
	if err != nil || len(definition.Spec.Versions) == 0 {
		panic(fmt.Sprintf("the embedded definition of Experiment: %v", err)) // embedded: a test reads it
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	return &spec
})
