// @vitest-environment node
import { expect, test } from "vitest";
import type { Waveform } from "../../../types";
import { modelOfWaveform } from "./models";

function waveform(spec: Waveform["spec"]): Waveform {
  return { apiVersion: "vignette.dev/v1alpha1", kind: "Waveform", metadata: { name: "own" }, spec };
}

test("a waveform's model is offered in place unless it has settings of EMANE's own", () => {
  expect(modelOfWaveform(waveform({ rfpipe: { rate: "1Mbit" } }))).toEqual({ model: "rfpipe", values: { rate: "1Mbit" } });
  expect(modelOfWaveform(waveform({ rfpipe: { rate: "1Mbit" }, emane: { parameters: [{ layer: "mac", name: "radiometricenable", values: ["on"] }] } }))).toBeUndefined();
});
