// Command cmd compiles the Scenario of a manifest and prints how its platforms are connected over time:
//
//	go run ./internal/scenario/compile/cmd -limit 121 scenarios/anglova-like/scenario.yaml
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func main() {
	limit := flag.Float64("limit", scenario.DefaultPathlossLimitDB, "pathloss in dB up to which a pair is connected")
	every := flag.Duration("every", time.Second, "time between the moments that are looked at")
	seed := flag.Int64("seed", 0, "seed of the movement and its terrain instead of the manifest's")
	flag.Parse()
	for _, file := range flag.Args() {
		if err := run(file, *limit, *every, *seed); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func run(file string, limitDB float64, every time.Duration, seed int64) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var object v1alpha1.Scenario
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if seed != 0 && object.Spec.Synthetic != nil {
		object.Spec.Synthetic.Seed = seed
		if object.Spec.Propagation != nil && object.Spec.Propagation.SyntheticTerrain != nil {
			object.Spec.Propagation.SyntheticTerrain = &seed
		}
	}
	compiled, err := os.CreateTemp("", "scenario-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(compiled.Close(), os.Remove(compiled.Name())) }()
	began := time.Now()
	result, err := compile.Compile(context.Background(), object.Spec, beside(file), compiled)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	info, err := compiled.Stat()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d platforms, %s, %s, %d bytes, compiled in %.1f s\n", object.Name, result.Statistics.Platforms,
		result.Statistics.Duration, result.Digest, info.Size(), time.Since(began).Seconds())
	for _, warning := range result.Warnings {
		fmt.Println("warning:", warning)
	}
	s, err := scenario.Open(compiled, info.Size())
	if err != nil {
		return err
	}
	return print(s, limitDB, every)
}

// Source files are beside the manifest, named by their keys.
func beside(manifest string) compile.Open {
	return func(source v1alpha1.ScenarioSource) ([]byte, error) {
		return os.ReadFile(filepath.Join(filepath.Dir(manifest), filepath.Base(source.Key)))
	}
}

func print(s *scenario.Scenario, limitDB float64, every time.Duration) error {
	hops, err := compile.Survey(s, limitDB, every)
	if err != nil {
		return err
	}
	fmt.Printf("hops over links of at most %g dB, every %s:\n%s\n", limitDB, every, strings.ReplaceAll(hops.String(), ", ", "\n  "))
	return nil
}
