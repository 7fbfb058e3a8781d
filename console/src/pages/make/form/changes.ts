import { parentOf, type Kind } from "../../../components/livechange/draft";
import { fieldsOf, wordOf, type Fields, type Path } from "../text/values";

/** Setting is a field of a change and what it gets; undefined removes it. */
export type Setting = readonly [string, unknown];

/** kindOfChange of a network. A radio that does not transmit is silent too. */
export function kindOfChange(change: Fields): Kind {
  if (change.jammer !== undefined) return "jammer";
  const onlyTransmits = Object.keys(fieldsOf(change.radio)).join() === "transmit";
  return change.silent !== undefined || onlyTransmits ? "silence" : "change";
}

export function isSilent(change: Fields): boolean {
  return change.silent === true || fieldsOf(change.radio).transmit === false;
}

/** silenced is a silence, or its end, of some radios or of the whole network: the one has radio.transmit, the other silent. */
export function silenced(change: Fields, from: string, silent: boolean): Setting[] {
  const { transmit, ...others } = fieldsOf(change.radio);
  if (from !== "") return [["from", from], ["radio", { ...others, transmit: !silent }], ["silent", undefined]];
  const rest: Setting[] = transmit === undefined ? [] : [["radio", Object.keys(others).length > 0 ? others : undefined]];
  return [["silent", silent], ...rest, ["from", undefined]];
}

/** turnedInto a change of another kind, with the values that it begins with. What it was before goes. */
export function turnedInto(kind: Kind, change: Fields, model: string): Setting[] {
  const next: Fields = { ...(change.from !== undefined && model !== "link" && kind !== "jammer" && { from: wordOf(change.from) }), ...beginning(kind, change, model) };
  const gone = Object.keys(change).filter((field) => field !== "network" && next[field] === undefined);
  return [...Object.entries(next), ...gone.map((field): Setting => [field, undefined])];
}

function beginning(kind: Kind, change: Fields, model: string): Fields {
  if (kind === "jammer") return { jammer: { name: "noise", power: "10W", pathloss: "90dB" } };
  if (kind === "silence") return change.from === undefined || model === "link" ? { silent: true } : { radio: { transmit: false } };
  return model === "link" ? { link: { loss: "10%" } } : { radio: { transmitPower: "30dBm" } };
}

/** pathOf a value within its change. */
export function pathOf(name: string, kind: Kind, model: string): Path {
  return [...parentOf(name, kind, model).split(".").filter((step) => step !== ""), name];
}
