import type { Verdict } from "../archive/types";
import { count } from "./figures";

/** punctuality of each network's emulation, in sentences. */
export function punctuality(verdict: Pick<Verdict, "networks"> | undefined): string[] {
  return (verdict?.networks ?? []).map(({ name, late, frames, lost, slots = 0, missed = 0 }) => {
    const ofSlots = slots + missed > 0 ? `, ${count(missed)} of ${count(slots + missed)} slots missed` : "";
    return `Network ${name}: ${count(late)} of ${count(frames)} frames released late, ${count(lost)} lost by the emulation${ofSlots}`;
  });
}
