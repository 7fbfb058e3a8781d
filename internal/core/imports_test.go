package core

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "vignette.dev/vignette/"

// imports of each package that matches the patterns; with deps, also of what they import.
func imports(t *testing.T, arguments ...string) map[string][]string {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}"}, arguments...)...)
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		found[words[0]] = words[1:]
	}
	return found
}

func TestTheAPIImportsNothingOfOurs(t *testing.T) {
	for path, all := range imports(t, "./operators/api/...") {
		for _, imported := range all {
			if strings.HasPrefix(imported, module) && !strings.HasPrefix(imported, module+"operators/api/") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

// controllers are above the core. Kinds of apps, in operators/apps, are not controllers.
var controllers = []string{"operators/experiment", "operators/campaign", "operators/scenario", "operators/cmd"}

func TestTheCLIAndTheCoreDoNotContainControllersOrClientsOfBrokers(t *testing.T) {
	for path := range imports(t, "-deps", "./internal/core/...", "./internal/validate", "./internal/console", "./cmd/vignette") {
		for _, above := range controllers {
			if strings.HasPrefix(path, module+above) {
				t.Errorf("they contain controller package %s", path)
			}
		}
		if strings.Contains(path, "/paho.") {
			t.Errorf("they contain the MQTT client %s", path)
		}
	}
}

// programs use the core.
var programs = []string{"internal/server", "internal/cli", "internal/console", "internal/validate", "internal/radiod", "cmd/", "images/"}

func TestTheCoreContainsNoneOfThePrograms(t *testing.T) {
	for path := range imports(t, "-deps", "./internal/core/...") {
		for _, above := range programs {
			if strings.HasPrefix(path, module+above) {
				t.Errorf("it contains %s", path)
			}
		}
	}
}

func TestControllersContainNoneOfTheCommands(t *testing.T) {
	for path := range imports(t, "-deps", "./operators/...") {
		for _, command := range []string{"internal/cli", "internal/console", "internal/validate"} {
			if strings.HasPrefix(path, module+command) {
				t.Errorf("they contain %s", path)
			}
		}
	}
}
