package wording

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

var jsonKinds = map[string]string{"string": "a text", "bool": "true or false", "array": "a list", "object": "an object"}

// JSONFault says why a text is not the JSON object that was wanted, without the words of the JSON library: "ts is 5.5", "id is
// a number". The field is empty if the text is no object. Other errors have no words.
func JSONFault(err error) (field, words string) {
	kind, isKind := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case isKind && kind.Field != "":
		// An embedded type is in the path by its Go name.
		parts := slices.DeleteFunc(strings.Split(kind.Field, "."), func(part string) bool { return part != "" && part[0] >= 'A' && part[0] <= 'Z' })
		field = strings.Join(parts, ".")
		if number, ok := strings.CutPrefix(kind.Value, "number "); ok {
			return field, field + " is " + number
		}
		return field, field + " is " + cmp.Or(jsonKinds[kind.Value], "a "+kind.Value)
	case isKind, errors.As(err, new(*json.SyntaxError)):
		return "", "it is not one whole JSON object"
	}
	return "", ""
}
