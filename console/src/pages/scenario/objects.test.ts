// @vitest-environment node
import { parseAllDocuments } from "yaml";
import { expect, test } from "vitest";
import { configMapsOf, csvOf, isPlan, objectsOf, platformsOf, yamlOf } from "./objects";
import type { Plan, Platform } from "./plan";

const platforms: Platform[] = [
  { number: 1, name: "hq", waypoints: [{ at: 0, latitude: 58.1, longitude: 7.9 }] },
  { number: 7, name: 'tank "1", old', waypoints: [{ at: 0, latitude: 58.11, longitude: 7.92 }, { at: 60, latitude: 58.12, longitude: 7.93 }] },
  { number: 3, name: "", waypoints: [{ at: 5, latitude: 58.13, longitude: 7.94 }] },
];
const plan: Plan = { name: "patrol", namespace: "team-nor", description: "", platforms, propagation: undefined };
const named = objectsOf(plan).scenario.spec.tracks?.named ?? [];

test("platforms come back from the file that they were written to", () => {
  expect(platformsOf(csvOf(platforms), named)).toEqual(platforms);
});

test("altitudes are written only where there are some", () => {
  expect(csvOf(platforms)).toMatch(/^time,platform,latitude,longitude\n0,hq,58.1,7.9\n/);
  const high = [{ number: 1, name: "", waypoints: [{ at: 0, latitude: 58, longitude: 8, altitude: 20 }] }];
  expect(csvOf(high)).toBe("time,platform,latitude,longitude,altitude\n0,1,58,8,20\n");
  expect(platformsOf(csvOf(high), [])).toEqual(high);
});

test("a file of another form is left to the server", () => {
  expect(platformsOf("0,1,58.1,7.9\n", [])).toBeUndefined();
  expect(platformsOf("time,platform,latitude,longitude\nnoon,1,58,8\n", [])).toBeUndefined();
  expect(platformsOf("time,platform,latitude,longitude\n0,unknown,58,8\n", [])).toBeUndefined();
});

test("the YAML has the waypoints and the Scenario that reads them", () => {
  const [configMap, scenario] = parseAllDocuments(yamlOf(objectsOf(plan))).map((document) => document.toJS() as Record<string, unknown>);
  expect(configMap).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "patrol-tracks" } });
  expect(scenario).toMatchObject({ kind: "Scenario", metadata: { name: "patrol", namespace: "team-nor" }, spec: { format: "csv", source: { configMap: "patrol-tracks", key: "tracks.csv" } } });
});

test("words that Kubernetes would read as truth values or numbers have quotes in the YAML", () => {
  const text = yamlOf(objectsOf({ ...plan, name: "010", description: "no" }));
  expect(text).toContain('  description: "no"\n');
  expect(text).toContain('  name: "010"\n');
});

test("only one plain CSV file can be edited", () => {
  const source = { configMap: "a", key: "tracks.csv" };
  expect(isPlan({ format: "csv", source })).toBe(true);
  expect(isPlan(objectsOf(plan).scenario.spec)).toBe(true);
  expect(isPlan({ format: "csv", source: { ...source, key: "tracks.csv.gz" } })).toBe(false);
  expect(isPlan({ format: "gpx", source })).toBe(false);
  expect(isPlan({ format: "csv", source, sources: [{ ...source, key: "more.csv" }] })).toBe(false);
  expect(isPlan({ format: "csv", source, compiled: `sha256:${"0".repeat(64)}` })).toBe(false);
  expect(isPlan({ format: "csv", source, sources: [] })).toBe(true);
  expect(isPlan({ format: "csv", source, tracks: { align: "Tracks", unit: "1m", yAxis: "North" } })).toBe(false);
});

test("a Scenario's files are those of its movement, its terrain and its antennas", () => {
  const terrain = { model: "Diffraction", frequency: "300MHz", terrain: { configMap: "hills", key: "a.asc" } } as NonNullable<Plan["propagation"]>;
  expect(configMapsOf({ format: "csv", source: { configMap: "a", key: "x" }, propagation: terrain })).toEqual(["a", "hills"]);
});

test("a platform that has another one's number as its name is left to the server to refuse", () => {
  const two: Platform[] = [
    { number: 1, name: "2", waypoints: [{ at: 0, latitude: 58.1, longitude: 7.9 }] },
    { number: 2, name: "", waypoints: [{ at: 0, latitude: 58.2, longitude: 7.9 }] },
  ];
  expect(objectsOf({ ...plan, platforms: two }).scenario.spec.tracks?.named).toEqual([{ name: "2", platform: 1 }, { name: "2", platform: 2 }]);
});
