package validate

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/internal/crdrules"
)

// definition is a CustomResourceDefinition, prepared to check objects as the API server does.
type definition struct {
	crd        *apiextensionsv1.CustomResourceDefinition
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

var definitions = sync.OnceValues(loadDefinitions)

// definitionOf returns the definition of a kind.
func definitionOf(kind string) (*definition, error) {
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	d, ok := all[kind]
	if !ok {
		return nil, fmt.Errorf("there is no kind %s in the group vignette.dev", kind)
	}
	return d, nil
}

func loadDefinitions() (map[string]*definition, error) {
	own, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	all := map[string]*definition{}
	for _, crd := range own {
		if all[crd.Spec.Names.Kind], err = newDefinition(crd, crdrules.All); err != nil {
			return nil, fmt.Errorf("%s: %w", crd.Name, err)
		}
	}
	return all, nil
}

// newDefinition prepares a definition, with this program's rules.
func newDefinition(crd *apiextensionsv1.CustomResourceDefinition, extent crdrules.Extent) (*definition, error) {
	if n := len(crd.Spec.Versions); n != 1 {
		return nil, fmt.Errorf("%d versions: want one", n)
	}
	if err := crdrules.Apply(crd, extent); err != nil {
		return nil, err
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	return &definition{
		crd:        crd,
		structural: structural,
		schema:     validator,
		rules:      cel.NewValidator(structural, true, budget),
	}, nil
}

// apiVersion returns that of the definition's objects.
func (d *definition) apiVersion() string {
	return strings.Join([]string{d.crd.Spec.Group, d.crd.Spec.Versions[0].Name}, "/")
}
