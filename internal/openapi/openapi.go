// Package openapi describes an HTTP API as OpenAPI 3.1: its operations from a table, its JSON from Go types and their doc comments.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Version of the specification.
const Version = "3.1.0"

// API is what a description covers.
type API struct {
	Title, Description string
	// Server is the path before those of the operations.
	Server string
	// ServerParameters are those of Server, with their meanings.
	ServerParameters map[string]string
	// PathParameters of all operations, with their meanings.
	PathParameters map[string]string
	// Problem is the answer of every unsuccessful request.
	Problem    any
	Operations []Operation
	// Others are types of files that the API serves.
	Others []any
	// WholeLists is set if no list or map of an answer is null, but those of fields with the tag openapi:"nullable".
	WholeLists bool
	// Values of types that have only these.
	Values map[reflect.Type][]any
	// Sources are folders with the types, below the module; their comments become descriptions.
	Sources []string
}

// Operation is one route.
type Operation struct {
	// Route as in http.ServeMux, such as GET /v1/runs/{uid}.
	Route string
	// ID names the operation in clients.
	ID string
	// Summary is a sentence without its stop; Description has more.
	Summary, Description string
	// Callers such as users, operator, agent.
	Callers []string
	Query   []Parameter
	// Body of the request, of Go's type for JSON; BodyTypes are the content types of another body.
	Body      any
	BodyTypes []string
	// Answer of Go's type for JSON; AnswerTypes are the content types of another answer. Without both the answer is empty.
	Answer      any
	AnswerTypes []string
}

// Parameter of a query.
type Parameter struct {
	Name, Description string
	// Type is string, integer or boolean; string if empty.
	Type     string
	Required bool
	// Several is set if the parameter may be repeated.
	Several bool
	Enum    []string
}

const jsonType = "application/json"

type object = map[string]any

// Describe makes the description, as indented JSON.
func Describe(api API) ([]byte, error) {
	types, err := newTypes(api)
	if err != nil {
		return nil, err
	}
	paths := object{}
	for _, operation := range api.Operations {
		method, path, parameters := splitRoute(operation.Route)
		described, err := types.operation(api, operation, parameters)
		if err != nil {
			return nil, err
		}
		at, known := paths[path].(object)
		if !known {
			at = object{}
			paths[path] = at
		}
		at[method] = described
	}
	for _, other := range api.Others {
		types.schema(other)
	}
	variables := object{}
	for name, meaning := range api.ServerParameters {
		variables[name] = object{"default": "default", "description": meaning}
	}
	text, err := json.MarshalIndent(object{
		"openapi": Version,
		"info":    object{"title": api.Title, "description": api.Description, "version": "v1"},
		"servers": []object{{"url": api.Server, "variables": variables}},
		"paths":   paths,
		"components": object{
			"schemas":         types.definitions,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "A token of Kubernetes."}},
		},
		"security": []object{{"token": []string{}}},
	}, "", " ")
	return append(text, '\n'), err
}

// pathParameter is a part of a route; with dots it has the rest of the path.
var pathParameter = regexp.MustCompile(`\{([a-zA-Z]+)(\.\.\.)?\}`)

// splitRoute returns OpenAPI's form of a route of http.ServeMux.
func splitRoute(route string) (method, path string, parameters []string) {
	method, path, _ = strings.Cut(route, " ")
	for _, found := range pathParameter.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, found[1])
	}
	return strings.ToLower(method), pathParameter.ReplaceAllString(path, "{$1}"), parameters
}

func (t *types) operation(api API, o Operation, path []string) (object, error) {
	parameters := []object{}
	for _, name := range path {
		meaning, known := api.PathParameters[name]
		if !known {
			return nil, fmt.Errorf("%s: parameter %s has no meaning", o.Route, name)
		}
		parameters = append(parameters, object{"name": name, "in": "path", "required": true, "description": meaning, "schema": object{"type": "string"}})
	}
	for _, query := range o.Query {
		parameters = append(parameters, query.describe())
	}
	described := object{
		"operationId": o.ID, "summary": o.Summary, "tags": o.Callers,
		"responses": object{
			successStatus(o): t.answer(o),
			"default":        object{"description": "What was wrong, and what would be right.", "content": jsonContent(t.schema(api.Problem))},
		},
	}
	if len(parameters) > 0 {
		described["parameters"] = parameters
	}
	if o.Description != "" {
		described["description"] = o.Description
	}
	if o.Body != nil {
		described["requestBody"] = object{"required": true, "content": jsonContent(t.schema(o.Body))}
	} else if len(o.BodyTypes) > 0 {
		described["requestBody"] = object{"required": true, "content": contentOf(o.BodyTypes)}
	}
	return described, nil
}

func (p Parameter) describe() object {
	kind := p.Type
	if kind == "" {
		kind = "string"
	}
	schema := object{"type": kind}
	if len(p.Enum) > 0 {
		schema["enum"] = p.Enum
	}
	if p.Several {
		schema = object{"type": "array", "items": schema}
	}
	described := object{"name": p.Name, "in": "query", "description": p.Description, "schema": schema}
	if p.Required {
		described["required"] = true
	}
	return described
}

func successStatus(o Operation) string {
	if o.Answer == nil && len(o.AnswerTypes) == 0 {
		return strconv.Itoa(http.StatusNoContent)
	}
	return strconv.Itoa(http.StatusOK)
}

func (t *types) answer(o Operation) object {
	switch {
	case o.Answer != nil:
		return object{"description": "The answer.", "content": jsonContent(t.schema(o.Answer))}
	case len(o.AnswerTypes) > 0:
		return object{"description": "The answer.", "content": contentOf(o.AnswerTypes)}
	}
	return object{"description": "It is done."}
}

func jsonContent(schema any) object { return object{jsonType: object{"schema": schema}} }

// contentOf describes text or bytes, or JSON of any form.
func contentOf(kinds []string) object {
	content := object{}
	for _, kind := range kinds {
		schema := object{"type": "string"}
		if kind == jsonType {
			schema = object{}
		}
		content[kind] = object{"schema": schema}
	}
	return content
}
