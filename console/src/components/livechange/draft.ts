import type { Cause } from "../../kubernetes/client";
import type { LiveChange } from "../../types";

type RadioChange = LiveChange["spec"]["changes"][number];

/** What a user wants to do to a network. */
export type Kind = "change" | "silence" | "jammer";

/** Draft is a LiveChange as it is filled in: what stands in the fields of a form. */
export interface Draft {
  kind: Kind;
  network: string;
  /** from and to are groups or nodes; empty for all. */
  from: string;
  to: string;
  /** ends: the silence or the jammer ends. */
  ends: boolean;
  /** values as they were typed, by field. Empty ones leave what holds. */
  values: Readonly<Record<string, string>>;
}

/** forNetwork is a draft for another network, which may not have the nodes of the one before. */
export function forNetwork(draft: Draft, network: string): Draft {
  return { ...draft, network, from: "", to: "" };
}

export interface Field {
  name: string;
  label: string;
  /** example of what may stand in the field. It says that it is one, as the value that holds is another. */
  example: string;
  choices?: readonly string[];
  /** isLong: the text has several lines. */
  isLong?: boolean;
}

function field(name: string, example: string, more: Partial<Field> = {}): Field {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return { name, label: words.charAt(0).toUpperCase() + words.slice(1), example: `e.g. ${example}`, ...more };
}

// The fields of the models, in the order of `vignette set` (internal/cli/setkeys.go).
const ofLink: readonly Field[] = [
  field("rate", "9.8kbit"),
  field("delay", "200ms"),
  field("jitter", "20ms"),
  field("jitterDistribution", "", { choices: ["uniform", "normal", "pareto", "paretonormal"] }),
  field("jitterCorrelation", "50%"),
  field("reorder", "", { choices: ["true", "false"] }),
  field("loss", "5%"),
  field("lossCorrelation", "25%"),
  field("goodToBad", "1%", { label: "Bursts: good to bad" }),
  field("badToGood", "25%", { label: "Bursts: bad to good" }),
  field("lossInBad", "100%", { label: "Bursts: loss in bad" }),
  field("lossInGood", "0%", { label: "Bursts: loss in good" }),
  field("duplicate", "1%"),
  field("corrupt", "1%"),
  field("limit", "1000", { label: "Limit, frames" }),
  field("limitBytes", "65536", { label: "Limit, bytes" }),
];
const ofRadios: readonly Field[] = [field("transmitPower", "5W"), field("antennaGain", "2dBi"), field("noiseFigure", "4dB")];
const ofModel: Readonly<Record<string, readonly Field[]>> = {
  link: ofLink,
  rfpipe: [field("rate", "64kbit"), field("delay", "5ms"), field("jitter", "2ms"), field("frequency", "310MHz"), ...ofRadios],
  emane: ofRadios.slice(0, 2), // EMANE takes no other noise figure while it runs
  tdma: [field("rate", "64kbit"), ...ofRadios, field("schedule", "", { example: "an EMANE TDMA schedule file", isLong: true })],
};
const ofJammer: readonly Field[] = [
  field("power", "100W"),
  field("latitude", "58.19"),
  field("longitude", "7.98"),
  field("altitude", "20m"),
  field("pathloss", "90dB", { label: "Pathloss to every node, instead of a position" }),
  field("frequency", "300MHz"),
  field("bandwidth", "250kHz"),
];

/** fieldsOf a draft, by the model of its network. */
export function fieldsOf(draft: Pick<Draft, "kind" | "ends">, model: string): readonly Field[] {
  if (draft.kind === "change") return ofModel[model] ?? [];
  if (draft.kind === "silence") return [];
  const name = field("name", "noise", { label: "Name of the jammer" });
  return draft.ends ? [name] : [name, ...ofJammer];
}

const bursts = ["goodToBad", "badToGood", "lossInBad", "lossInGood"];
const numbers = ["limit", "limitBytes"];
const ofPosition = ["latitude", "longitude", "altitude"];

/** endsOf a draft are those that its form asks for. Radios send to all, so that only a change of a link has receivers. */
export function endsOf({ kind }: Pick<Draft, "kind">, model: string): readonly ("from" | "to")[] {
  if (model !== "link") return kind === "jammer" ? [] : ["from"];
  return kind === "change" ? ["from", "to"] : [];
}

/** changeOf a draft is what the API server is asked for. It judges the values. */
export function changeOf(draft: Draft, model: string): RadioChange {
  const ends = Object.fromEntries(endsOf(draft, model).map((end) => [end, draft[end]] as const).filter(([, name]) => name !== ""));
  if (draft.kind === "jammer") return { network: draft.network, jammer: jammerOf(draft) };
  if (draft.kind === "silence") {
    // A link has no transmitter: the network as a whole is silent. So it is where all nodes of a radio network are meant.
    if (model === "link" || draft.from === "") return { network: draft.network, silent: !draft.ends };
    return { network: draft.network, from: draft.from, radio: { transmit: draft.ends } };
  }
  const { schedule, ...values } = given(draft, fieldsOf(draft, model));
  const change = { network: draft.network, ...ends, ...(schedule !== undefined && { schedule }) };
  if (Object.keys(values).length === 0) return change;
  return model === "link" ? { ...change, link: linkOf(values) } : { ...change, radio: values };
}

function given(draft: Draft, fields: readonly Field[]): Record<string, string> {
  return Object.fromEntries(fields.map(({ name }) => [name, (draft.values[name] ?? "").trim()] as const).filter(([, value]) => value !== ""));
}

function linkOf(values: Record<string, string>): NonNullable<RadioChange["link"]> {
  const link: Record<string, unknown> = {};
  const burst: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    if (bursts.includes(name)) burst[name] = value;
    else if (numbers.includes(name)) link[name] = /^\d+$/.test(value) ? Number(value) : value;
    else link[name] = name === "reorder" ? value === "true" : value;
  }
  if (Object.keys(burst).length > 0) link.gilbertElliott = burst;
  return link;
}

function jammerOf(draft: Draft): NonNullable<RadioChange["jammer"]> {
  const { name = "", ...values } = given(draft, fieldsOf(draft, ""));
  if (draft.ends) return { name, silent: true };
  const jammer: Record<string, unknown> = { name };
  const position: Record<string, string> = {};
  for (const [part, value] of Object.entries(values)) {
    if (ofPosition.includes(part)) position[part] = value;
    else jammer[part] = value;
  }
  if (Object.keys(position).length > 0) jammer.position = position;
  return jammer as NonNullable<RadioChange["jammer"]>;
}

/** liveChangeOf a draft is the object that is created. Kubernetes gives it a name. */
export function liveChangeOf(experiment: { namespace: string; name: string }, draft: Draft, model: string): LiveChange {
  const { namespace, name } = experiment;
  return { metadata: { name: "", namespace, generateName: `${name}-` }, spec: { experiment: name, changes: [changeOf(draft, model)] } };
}

/** errorsOf a refusal by field of a form, which is known by the path that Kubernetes names. All other words are returned as rest. */
export function errorsOf(causes: readonly Cause[], fields: ReadonlyMap<string, string>): { byField: Record<string, string>; rest: string[] } {
  const byField: Record<string, string> = {};
  const rest: string[] = [];
  for (const { field: path, message } of causes) {
    const own = fields.get(path);
    if (own !== undefined && (byField[own] ?? message) === message) byField[own] = message;
    else rest.push(message);
  }
  return { byField, rest: [...new Set(rest)] };
}

/** pathsOf the fields of a draft in its LiveChange. An error of a position as a whole stands at its first field. */
export function pathsOf(draft: Draft, model: string): ReadonlyMap<string, string> {
  const change = "spec.changes[0]";
  const paths = new Map(["network", ...endsOf(draft, model)].map((name) => [`${change}.${name}`, name]));
  const fields = fieldsOf(draft, model).map(({ name }) => name);
  for (const name of fields) paths.set(`${change}.${parentOf(name, draft.kind, model)}${name}`, name);
  if (fields.includes("latitude")) paths.set(`${change}.jammer.position`, "latitude");
  return paths;
}

/** parentOf a field is where it stands in a change, such as "link." */
export function parentOf(name: string, kind: Kind, model: string): string {
  if (kind === "jammer") return ofPosition.includes(name) ? "jammer.position." : "jammer.";
  if (name === "schedule") return "";
  if (model !== "link") return "radio.";
  return bursts.includes(name) ? "link.gilbertElliott." : "link.";
}
