package runapi

import _ "embed"

// OpenAPI describes the paths of this package as OpenAPI 3.1. It is generated from the types by make generate.
//
//go:embed openapi.json
var OpenAPI []byte
