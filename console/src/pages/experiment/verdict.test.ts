// @vitest-environment node
import { expect, test } from "vitest";
import type { LiveFigures, RunState } from "../../archive/types";
import type { Experiment } from "../../types";
import { emulationOf } from "./verdict";

const results = { expected: 1, gaps: 0, lost: 0, received: 1, sent: 1 };

function ended(more: object): Experiment {
  return { metadata: { name: "e" }, spec: { apps: [], networks: [], nodes: [] }, status: { phase: "Succeeded", results: { ...results, ...more } } };
}

function live(more: Partial<LiveFigures>): RunState {
  const figures = { triggered: 0, sent: 0, headline: "all", offered: 0, expected: 0, received: 0, delaySeconds: null, queueFrames: 0, lateReleases: 0, slotsMissed: 0, worstLatenessSeconds: 0, ...more };
  return { live: figures } as unknown as RunState;
}

const running: Experiment = { metadata: { name: "e" }, spec: { apps: [], networks: [], nodes: [] }, status: { phase: "Running" } };

test("while a run goes on, its lateness so far is shown", () => {
  expect(emulationOf(running, live({}))).toMatchObject({ kind: "kept", headline: "No frame late so far" });
  expect(emulationOf(running, live({ lateReleases: 1, slotsMissed: 3, worstLatenessSeconds: 0.0134 }))).toMatchObject({
    kind: "late",
    headline: "1 frame released over 2 ms late, 3 slots missed; worst 13.4 ms",
  });
});

test("without a measurement nothing is claimed", () => {
  expect(emulationOf(running, undefined).kind).toBe("unknown");
});

test("when a run is over, the verdict says by how much figures are off", () => {
  expect(emulationOf(ended({ keptUp: true, offByAtMost: "0.3 ms of the median" }), undefined)).toMatchObject({
    kind: "kept",
    headline: "The emulation kept up: figures are off by at most 0.3 ms of the median",
  });
  const state = { results: { verdict: { keptUp: false, exceeded: ["the median is off by 5 ms"], networks: [{ name: "wan", frames: 12345, late: 9, worstSeconds: 1, lost: 2, slots: 3, missed: 1 }] } } } as unknown as RunState;
  const bad = emulationOf(ended({ keptUp: false }), state);
  expect(bad.kind).toBe("off");
  expect(bad.details).toEqual(["the median is off by 5 ms", "Network wan: 9 of 12\u202f345 frames released late, 2 lost by the emulation, 1 of 4 slots missed"]);
});
