package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// antennaProfilesTimeout limits the download of a compiled scenario, which may be large.
const antennaProfilesTimeout = time.Minute

// antennasOf are the antennas of a network's members, from its compiled scenario, which radiod replays too. It returns nil if
// there are no antenna profiles.
func (r *Reconciler) antennasOf(ctx context.Context, s *scope, network *v1alpha1.RadioNetwork) (antennas *emane.Antennas, err error) {
	if network.Spec.Scenario == "" || s.scenario == nil || s.scenario.Statistics.AntennaProfiles == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, antennaProfilesTimeout)
	defer cancel()
	file, err := os.CreateTemp("", "scenario-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	body, err := r.Scenarios.Scenario(ctx, network.Spec.Scenario)
	if err != nil {
		return nil, fmt.Errorf("antenna profiles of scenario %s: %w", s.scenario.Name, err)
	}
	defer body.Close()
	size, err := io.Copy(file, body)
	if err != nil {
		return nil, fmt.Errorf("antenna profiles of scenario %s: %w", s.scenario.Name, err)
	}
	compiled, err := scenario.Open(file, size)
	if err != nil {
		return nil, fmt.Errorf("antenna profiles of scenario %s: %w", s.scenario.Name, err)
	}
	return emane.NewAntennas(&network.Spec, compiled), nil
}
