// Package refusal marks errors about a part of a spec that no retry can apply.
package refusal

import "errors"

// refusal is an error about a part of a spec that no retry can apply.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Of marks an error as a refusal; nil stays nil.
func Of(err error) error {
	if err == nil {
		return nil
	}
	return refusal{err}
}

// First returns the text of the first refusal in an error, or "".
func First(err error) string {
	if r, ok := errors.AsType[refusal](err); ok {
		return r.Error()
	}
	return ""
}
