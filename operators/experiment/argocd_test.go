package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// deployersHealth is an object's health as "Current, Healthy: message": what Flux sees by kstatus, and Argo CD by the
// chart's check.
func deployersHealth(t testing.TB, object client.Object) string {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, testkube.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	result, err := status.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s, %s", result.Status, argoCDHealth(t, u))
}

// argoCDHealth runs the check as Argo CD does: in the same interpreter, with the same libraries, and the object in obj.
func argoCDHealth(t testing.TB, u *unstructured.Unstructured) string {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetGlobal("obj", luaValue(l, u.Object))
	if err := l.DoString(healthCheck(t, u.GetKind())); err != nil {
		t.Fatalf("health check of %s: %v", u.GetKind(), err)
	}
	health, is := l.Get(-1).(*lua.LTable)
	if !is {
		t.Fatalf("health check of %s returned %s, want a table", u.GetKind(), l.Get(-1).Type())
	}
	text := health.RawGetString("status").String()
	if message := health.RawGetString("message"); message != lua.LNil && message.String() != "" {
		text += ": " + message.String()
	}
	return text
}

// healthCheck returns a kind's check from the chart.
func healthCheck(t testing.TB, kind string) string {
	t.Helper()
	_, here, _, _ := goruntime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../charts/vignette/files/argocd/health.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &configMap); err != nil {
		t.Fatal(err)
	}
	script, known := configMap.Data["resource.customizations.health."+v1alpha1.GroupVersion.Group+"_"+kind]
	if !known {
		t.Fatalf("charts/vignette/files/argocd/health.yaml has no check of %s", kind)
	}
	return script
}

// luaValue returns the value of an object's field in Lua.
func luaValue(l *lua.LState, of any) lua.LValue {
	switch v := of.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		table := l.CreateTable(len(v), 0)
		for _, element := range v {
			table.Append(luaValue(l, element))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, element := range v {
			table.RawSetString(key, luaValue(l, element))
		}
		return table
	}
	return lua.LNil
}
