import { modelOf, models } from "../../../components/models";
import type { Waveform } from "../../../types";
import { fieldsOf, wordOf, type Fields, type Path } from "../text/values";

/** fieldsOfModel are those that people change most, with labels. */
export const fieldsOfModel: Record<string, { label: string; path: Path }[]> = {
  link: [
    { label: "Rate", path: ["rate"] },
    { label: "Delay", path: ["delay"] },
    { label: "Jitter", path: ["jitter"] },
    { label: "Loss", path: ["loss"] },
  ],
  rfpipe: [
    { label: "Rate", path: ["rate"] },
    { label: "Delay", path: ["delay"] },
    { label: "Frequency", path: ["phy", "frequency"] },
    { label: "Bandwidth", path: ["phy", "bandwidth"] },
    { label: "Transmit power", path: ["phy", "transmitPower"] },
    { label: "Noise figure", path: ["phy", "noiseFigure"] },
  ],
  tdma: [
    { label: "Rate", path: ["rate"] },
    { label: "Slots", path: ["structure", "slots"] },
    { label: "Slot duration", path: ["structure", "slotDuration"] },
    { label: "Frequency", path: ["phy", "frequency"] },
    { label: "Bandwidth", path: ["phy", "bandwidth"] },
    { label: "Transmit power", path: ["phy", "transmitPower"] },
  ],
};

/** beginnings are the values with which a model of a network's own begins. */
export const beginnings: Record<string, Fields> = {
  link: { rate: "1Mbit", delay: "20ms", loss: "0%" },
  rfpipe: { rate: "1Mbit", phy: { frequency: "300MHz", bandwidth: "250kHz", transmitPower: "37dBm" } },
  tdma: { rate: "1Mbit", structure: { slotDuration: "5ms" }, phy: { frequency: "300MHz", bandwidth: "250kHz", transmitPower: "37dBm" } },
};

/** modelOfWaveform is the model that a waveform has and a network may have in place, with its values. */
export function modelOfWaveform(waveform: Waveform): { model: string; values: Fields } | undefined {
  const spec = fieldsOf(waveform.spec);
  if (spec.emane !== undefined) return undefined; // only waveforms have settings of EMANE's own
  const model = models.find((each) => spec[each] !== undefined);
  return model && { model, values: fieldsOf(spec[model]) };
}

/** modelOfNetwork is that in place or that of its waveform, which is EMANE's own if it is none of the others; undefined if the waveform is unknown. */
export function modelOfNetwork(network: Fields, known: readonly Waveform[]): string | undefined {
  const own = modelOf(network);
  if (own) return own;
  const spec = known.find(({ metadata }) => metadata.name === wordOf(network.waveform))?.spec;
  return spec && (modelOf(spec) ?? "emane");
}

/** summaryOf a waveform in a line. */
export function summaryOf(waveform: Waveform): string {
  const found = modelOfWaveform(waveform);
  if (!found) return "";
  const words = ["rate", "delay", "jitter", "loss"].flatMap((name) => (wordOf(found.values[name]) ? [`${name} ${wordOf(found.values[name])}`] : []));
  return [found.model, ...words].join(", ");
}
