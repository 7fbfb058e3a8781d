import { stringify } from "yaml";
import type { Kind, KubernetesObject } from "../../kubernetes/kinds";
import type { Scenario } from "../../types";
import { labelOf, type Plan, type Platform } from "./plan";

export interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

export const configMaps: Kind<ConfigMap> = { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true };

const key = "tracks.csv";

/** Objects are what a plan is saved as: its waypoints in a ConfigMap, and the Scenario that reads them. */
export interface Objects {
  configMap: ConfigMap & { data: Record<string, string> };
  scenario: Scenario;
}

/** objectsOf a plan. */
export function objectsOf(plan: Plan): Objects {
  const { name, namespace, description, platforms, propagation, orderOfBattle } = plan;
  const configMap = `${name}-tracks`;
  const named = namedIn(platforms).map((platform) => ({ name: labelOf(platform), platform: platform.number }));
  const spec: Scenario["spec"] = {
    ...(description !== "" && { description }),
    format: "csv",
    source: { configMap, key },
    ...(named.length > 0 && { tracks: { named } }),
    ...(propagation && { propagation }),
    ...(orderOfBattle && { orderOfBattle }),
  };
  return { configMap: { metadata: { name: configMap, namespace }, data: { [key]: csvOf(platforms) } }, scenario: { metadata: { name, namespace }, spec } };
}

/** namedIn are the platforms with names. A platform whose number is the name of another is among them: the server then refuses the two. */
function namedIn(platforms: readonly Platform[]): Platform[] {
  const names = new Set(platforms.map(({ name }) => name));
  return platforms.filter((platform) => platform.name !== "" || names.has(labelOf(platform)));
}

/** yamlOf objects, as kubectl apply takes them. */
export function yamlOf({ configMap, scenario }: { configMap?: ConfigMap; scenario: Scenario }, others: readonly ConfigMap[] = []): string {
  const documents: unknown[] = [...(configMap ? [configMap] : []), ...others].map(({ metadata, data, binaryData }) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: metadata.name, namespace: metadata.namespace },
    ...(data && { data }),
    ...(binaryData && { binaryData }),
  }));
  const { name, namespace } = scenario.metadata;
  documents.push({ apiVersion: "vignette.dev/v1alpha1", kind: "Scenario", metadata: { name, namespace }, spec: scenario.spec });
  // Go reads YAML 1.1, to which a platform called "on" needs quotes.
  return documents.map((document) => stringify(document, { lineWidth: 0, version: "1.1" })).join("---\n");
}

/** csvOf platforms, as docs/reference/scenario-formats.md has it. Without any altitude antennas stand on the ground. */
export function csvOf(platforms: readonly Platform[]): string {
  const high = platforms.some(({ waypoints }) => waypoints.some(({ altitude }) => altitude !== undefined));
  const rows = [`time,platform,latitude,longitude${high ? ",altitude" : ""}`];
  for (const platform of platforms) {
    for (const { at, latitude, longitude, altitude } of platform.waypoints) {
      rows.push([at, quoted(labelOf(platform)), latitude, longitude, ...(high ? [altitude ?? 0] : [])].join(","));
    }
  }
  return `${rows.join("\n")}\n`;
}

function quoted(text: string): string {
  return /[",\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** platformsOf the text of a CSV file as csvOf writes it; undefined if it has another form, which only the server reads. */
export function platformsOf(csv: string, named: readonly { name: string; platform?: number }[]): Platform[] | undefined {
  const [header = "", ...lines] = csv.trim().split(/\r?\n/);
  if (!/^time,platform,latitude,longitude(,altitude)?$/.test(header)) return undefined;
  const numbers = new Map(named.map(({ name, platform }) => [name, platform]));
  const platforms = new Map<string, Platform>();
  for (const line of lines) {
    const cells = cellsOf(line);
    const [at, label = "", latitude, longitude, altitude] = cells;
    const values = [at, latitude, longitude, altitude ?? "0"].map(Number);
    const number = numbers.get(label) ?? Number(label);
    if (values.some((value) => Number.isNaN(value)) || !Number.isInteger(number) || number < 1) return undefined;
    const platform = platforms.get(label) ?? { number, name: numbers.has(label) ? label : "", waypoints: [] };
    const point = { at: values[0] ?? 0, latitude: values[1] ?? 0, longitude: values[2] ?? 0, ...(altitude !== undefined && { altitude: values[3] ?? 0 }) };
    platforms.set(label, { ...platform, waypoints: [...platform.waypoints, point] });
  }
  return [...platforms.values()].map((platform) => ({ ...platform, waypoints: [...platform.waypoints].sort((a, b) => a.at - b.at) }));
}

function cellsOf(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, inside, plain]) => inside?.replaceAll('""', '"') ?? plain ?? "");
}

/** configMapsOf a Scenario are the names of those that it reads. */
export function configMapsOf({ source, sources, propagation, antennaProfiles }: Scenario["spec"]): string[] {
  const all = [source, ...(sources ?? []), propagation?.terrain, antennaProfiles];
  return [...new Set(all.flatMap((one) => (one ? [one.configMap] : [])))];
}

/** isPlan reports whether the editor can edit the movement of a Scenario: one CSV file without options that move it. */
export function isPlan({ format, source, sources, compiled, tracks }: Scenario["spec"]): boolean {
  // Saving would remove other files, and a compiled scenario.
  if (format !== "csv" || !source || (sources?.length ?? 0) > 0 || compiled !== undefined) return false;
  if (source.key.endsWith(".gz") || source.offset !== undefined || source.platform !== undefined) return false;
  const { named, ...others } = tracks ?? {};
  const moves = Object.entries(others).some(([option, value]) => value !== { align: "AsDated", unit: "1m", yAxis: "North" }[option]);
  return !moves && !(named ?? []).some(({ offset, speed, duration }) => offset ?? speed ?? duration);
}
