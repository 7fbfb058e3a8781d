package render

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// ignitionVersion is that of the platform's part: the first of Ignition's specification 3, which every later one accepts.
const ignitionVersion = "3.0.0"

// ignitionOf is the user's configuration, into which Ignition merges the agent's (ignition.config.merge of its specification
// 3). An unchecked one is passed on unchanged.
func ignitionOf(node topology.Node, spec v1alpha1.VirtualMachine) string {
	if !node.HasAgent() {
		return spec.Ignition
	}
	merged, err := mergeIgnition(spec.Ignition)
	if err != nil {
		return spec.Ignition
	}
	return merged
}

// mergeIgnition adds the agent's configuration and changes nothing else.
func mergeIgnition(given string) (string, error) {
	var config map[string]any
	decoder := json.NewDecoder(strings.NewReader(given))
	decoder.UseNumber()
	if err := decoder.Decode(&config); err != nil {
		return "", fmt.Errorf("is not a JSON object: %w", err)
	}
	about, _ := config["ignition"].(map[string]any)
	version, _ := about["version"].(string)
	if !strings.HasPrefix(version, "3.") {
		return "", fmt.Errorf("has ignition.version %q: the platform's agent is added to 3.x; write agent: false for another", version)
	}
	if _, there := about["config"]; !there {
		about["config"] = map[string]any{}
	}
	from, isObject := about["config"].(map[string]any)
	list, isList := from["merge"].([]any)
	if _, there := from["merge"]; !isObject || there && !isList {
		return "", errors.New("must have an object in ignition.config, and a list in ignition.config.merge")
	}
	from["merge"] = append(list, map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString(agentIgnition())})
	text, err := json.Marshal(config)
	return string(text), err
}

// agentIgnition is a configuration that creates and enables the agent's unit.
func agentIgnition() []byte {
	text, _ := json.Marshal(map[string]any{ // strings and booleans can always be encoded
		"ignition": map[string]any{"version": ignitionVersion},
		"systemd":  map[string]any{"units": []any{map[string]any{"name": agentUnitName, "enabled": true, "contents": agentUnit}}},
	})
	return text
}

// checkIgnition checks the Ignition configuration of a node.
func checkIgnition(node topology.Node, spec v1alpha1.VirtualMachine) error {
	if spec.Ignition == "" {
		return nil
	}
	if !node.HasAgent() {
		if !json.Valid([]byte(spec.Ignition)) {
			return errors.New("is not JSON")
		}
		return nil
	}
	_, err := mergeIgnition(spec.Ignition)
	return err
}
