import type { LiveFigures, RunState } from "../../archive/types";
import { duration, many } from "../../components/figures";
import { punctuality } from "../../components/punctuality";
import type { Experiment } from "../../types";

/** What is known of the emulation's punctuality. */
export interface EmulationState {
  /** kept: on time so far, or the verdict is good. late: late so far. off: the verdict is bad. unknown: nothing was measured. */
  kind: "kept" | "late" | "off" | "unknown";
  headline: string;
  /** Sentences that say more. */
  details: string[];
}

/** emulationOf a run: its verdict when it is over, else its lateness so far. */
export function emulationOf(e: Experiment, state: RunState | undefined): EmulationState {
  const results = e.status?.results;
  if (results?.keptUp === true) {
    const off = results.offByAtMost ? `figures are off by at most ${results.offByAtMost}` : "no figure is off";
    return { kind: "kept", headline: `The emulation kept up: ${off}`, details: detailsOf(state) };
  }
  if (results?.keptUp === false) {
    const by = results.offByAtMost ? `figures may be off by ${results.offByAtMost}` : "losses and delays may be those of an overloaded machine";
    return { kind: "off", headline: `The emulation did not keep up: ${by}`, details: detailsOf(state) };
  }
  return state?.live ? soFar(state.live) : { kind: "unknown", headline: "The emulation's lateness is not known", details: [] };
}

function soFar(live: LiveFigures): EmulationState {
  if (live.lateReleases === 0 && live.slotsMissed === 0) return { kind: "kept", headline: "No frame late so far", details: [] };
  const late = [];
  if (live.lateReleases > 0) late.push(`${many(live.lateReleases, "frame")} released over 2 ms late`);
  if (live.slotsMissed > 0) late.push(`${many(live.slotsMissed, "slot")} missed`);
  return {
    kind: "late",
    headline: `${late.join(", ")}; worst ${duration(live.worstLatenessSeconds)}`,
    details: ["The verdict comes with the results: it says how far these can have moved the figures."],
  };
}

function detailsOf(state: RunState | undefined): string[] {
  const verdict = state?.results?.verdict;
  return [...(verdict?.exceeded ?? []), ...punctuality(verdict), ...(verdict?.context ?? [])];
}
