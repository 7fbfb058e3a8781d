package fieldpath

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/internal/crdrules"
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
	crdrules.AddFormats(&definition, crdrules.ExperimentFormats())
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	return &spec
})

var structural = sync.OnceValue(func() *schema.Structural {
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(Experiment(), &internal, nil)
	var s *schema.Structural
	if err == nil {
		s, err = schema.NewStructural(&internal)
	}
	if err != nil {
		panic(fmt.Sprintf("the embedded definition of Experiment: %v", err)) // embedded: a test reads it
	}
	return s
})

// Default sets the defaults of an experiment's spec as the API server does.
func Default(spec map[string]any) { defaulting.Default(spec, structural()) }
