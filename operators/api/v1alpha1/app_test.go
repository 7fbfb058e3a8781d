package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestAnAppIsOfTheKindOfTheFieldThatMakesIt(t *testing.T) {
	for i := range reflect.TypeFor[App]().NumField() {
		field := reflect.TypeFor[App]().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Kind() != reflect.Pointer || slices.Contains([]string{"security", "runAsUser", "resources"}, name) {
			continue
		}
		var app App
		reflect.ValueOf(&app).Elem().Field(i).Set(reflect.New(field.Type.Elem()))
		if app.Kind() != name {
			t.Errorf("an app with %s is of the kind %q", name, app.Kind())
		}
	}
	if kind := (&App{Command: []string{"/run"}}).Kind(); kind != "command" {
		t.Errorf("an app with a command is of the kind %q", kind)
	}
}
