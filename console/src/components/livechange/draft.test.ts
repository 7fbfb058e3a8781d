// @vitest-environment node
import { expect, test } from "vitest";
import { changeOf, errorsOf, fieldsOf, forNetwork, liveChangeOf, pathsOf, type Draft } from "./draft";

const draft: Draft = { kind: "change", network: "vhf", from: "", to: "", ends: false, values: {} };

test("a change of a link has only what was typed", () => {
  const change = changeOf({ ...draft, from: "hq", to: "veh", values: { delay: " 200ms ", loss: "", limit: "500", reorder: "false" } }, "link");
  expect(change).toEqual({ network: "vhf", from: "hq", to: "veh", link: { delay: "200ms", limit: 500, reorder: false } });
});

test("bursts are one part of a link", () => {
  expect(changeOf({ ...draft, values: { goodToBad: "1%", badToGood: "25%" } }, "link").link).toEqual({ gilbertElliott: { goodToBad: "1%", badToGood: "25%" } });
});

test("a number that is none is left to the API server's words", () => {
  expect(changeOf({ ...draft, values: { limit: "many" } }, "link").link).toEqual({ limit: "many" });
});

test("radios have fields of their own, by model", () => {
  expect(changeOf({ ...draft, from: "hq", values: { transmitPower: "5W", frequency: "310MHz" } }, "tdma").radio).toEqual({ transmitPower: "5W" });
  expect(fieldsOf(draft, "rfpipe").map(({ name }) => name)).toContain("frequency");
  expect(fieldsOf(draft, "emane").map(({ name }) => name)).toEqual(["transmitPower", "antennaGain"]);
  expect(changeOf({ ...draft, values: { schedule: "<emane/>" } }, "tdma")).toEqual({ network: "vhf", schedule: "<emane/>" });
});

test("an example in an empty field is not taken for the value that holds", () => {
  const typed = ["link", "rfpipe", "emane"].flatMap((model) => fieldsOf(draft, model)).filter(({ choices }) => !choices);
  expect(typed.map(({ example }) => example).filter((example) => !example.startsWith("e.g. "))).toEqual([]);
  expect(fieldsOf(draft, "rfpipe").find(({ name }) => name === "frequency")?.example).toBe("e.g. 310MHz");
});

test("radios send to all: no receiver is asked for, and none is sent that a selected link had", () => {
  const ofLink: Draft = { ...draft, from: "hq", to: "veh", values: { transmitPower: "5W" } };
  expect(changeOf(ofLink, "rfpipe")).toEqual({ network: "vhf", from: "hq", radio: { transmitPower: "5W" } });
  const to = { field: "spec.changes[0].to", message: "leave it out" };
  expect(errorsOf([to], pathsOf(ofLink, "rfpipe"))).toEqual({ byField: {}, rest: [to.message] });
  expect(errorsOf([to], pathsOf(ofLink, "link"))).toEqual({ byField: { to: to.message }, rest: [] });
});

test("a schedule and values of radios are sent together", () => {
  expect(changeOf({ ...draft, values: { schedule: "<emane/>", transmitPower: "5W" } }, "tdma")).toEqual({ network: "vhf", schedule: "<emane/>", radio: { transmitPower: "5W" } });
});

test("a radio is silenced, and a network of links as a whole", () => {
  const silence: Draft = { ...draft, kind: "silence", from: "hq" };
  expect(changeOf(silence, "tdma")).toEqual({ network: "vhf", from: "hq", radio: { transmit: false } });
  expect(changeOf({ ...silence, ends: true }, "tdma").radio).toEqual({ transmit: true });
  expect(changeOf(silence, "link")).toEqual({ network: "vhf", silent: true });
  expect(changeOf({ ...silence, from: "" }, "rfpipe")).toEqual({ network: "vhf", silent: true });
});

test("a jammer has a place, and ends by its name", () => {
  const jammer: Draft = { ...draft, kind: "jammer", values: { name: "noise", power: "100W", latitude: "58.19", longitude: "7.98" } };
  expect(changeOf(jammer, "tdma").jammer).toEqual({ name: "noise", power: "100W", position: { latitude: "58.19", longitude: "7.98" } });
  expect(changeOf({ ...jammer, ends: true }, "tdma").jammer).toEqual({ name: "noise", silent: true });
});

test("the object names its experiment, and Kubernetes names the object", () => {
  const object = liveChangeOf({ namespace: "team-nor", name: "bft" }, { ...draft, values: { loss: "5%" } }, "link");
  expect(object).toEqual({ metadata: { name: "", namespace: "team-nor", generateName: "bft-" }, spec: { experiment: "bft", changes: [{ network: "vhf", link: { loss: "5%" } }] } });
});

test("what the API server refuses stands at its field", () => {
  const ofJammer = pathsOf({ ...draft, kind: "jammer" }, "tdma");
  const position = { field: "spec.changes[0].jammer.position", message: "a jammer needs either its position or its pathloss to every node" };
  const power = { field: "spec.changes[0].jammer.power", message: "must be a power with its unit" };
  expect(errorsOf([position, power], ofJammer)).toEqual({ byField: { latitude: position.message, power: power.message }, rest: [] });
  const bursts = { field: "spec.changes[0].link.gilbertElliott.goodToBad", message: "must be a share" };
  const silent = { field: "spec.changes[0]", message: "silent is for the whole network" };
  expect(errorsOf([bursts, silent], pathsOf(draft, "link"))).toEqual({ byField: { goodToBad: bursts.message }, rest: [silent.message] });
});

test("words about another field of the same name do not stand at a field of the form", () => {
  expect(errorsOf([{ field: "metadata.network", message: "is unknown" }], pathsOf(draft, "link"))).toEqual({ byField: {}, rest: ["is unknown"] });
});

test("a second message about a field is not lost", () => {
  const field = "spec.changes[0].link.delay";
  const causes = ["must have a unit", "must be below 1 h", "must have a unit"].map((message) => ({ field, message }));
  expect(errorsOf(causes, pathsOf(draft, "link"))).toEqual({ byField: { delay: "must have a unit" }, rest: ["must be below 1 h"] });
});

test("another network may not have the nodes of the one before", () => {
  expect(forNetwork({ ...draft, from: "hq", to: "veh", values: { delay: "1s" } }, "sat")).toMatchObject({ network: "sat", from: "", to: "", values: { delay: "1s" } });
});
