import { expect, test } from "vitest";
import { edited, type Edit } from "../text/edits";
import { read, specOf } from "../text/read";
import { empty } from "../start/empty";
import { Editing, freeIn, freeSubnet, kindOf } from "./actions";

/** after the edits that a form makes of a text. */
function after(text: string, make: (editing: Editing) => Edit[]): string {
  const main = read(text).main;
  if (!main) throw new Error("the text has no experiment");
  return edited(text, make(new Editing(main)));
}

function line(text: string, word: string): string | undefined {
  return text.split("\n").find((each) => each.includes(word))?.trim();
}

test("a network gets a named waveform in the place of its own model, and back", () => {
  const named = after(empty, (e) => e.useWaveform(0, "satcom"));
  expect(line(named, "name: wan")).toBe("- {name: wan, waveform: satcom, subnet: 198.18.0.0/24}");
  const own = after(named, (e) => e.useModel(0, "link", { rate: "9.6kbit" }));
  expect(line(own, "name: wan")).toBe("- {name: wan, link: {rate: 9.6kbit}, subnet: 198.18.0.0/24}");
});

test("a broker is replaced by one of another kind", () => {
  expect(line(after(empty, (e) => e.useBroker(0, "vernemq")), "name: broker")).toMatch(/^- \{name: broker, vernemq: \{\}\}/);
});

test("a mediator's leg gets a protocol that its broker's other kind speaks", () => {
  const text = "kind: Experiment\nspec:\n  apps: [{name: hub, mosquitto: {}}, {name: b, mosquitto: {}}, {name: m, mediator: {legs: [{protocol: mqtt, to: hub}, {protocol: mqtt, to: b}]}}]\n";
  expect(after(text, (e) => e.useBroker(0, "prosody"))).toContain("legs: [{protocol: xmpp, to: hub}, {protocol: mqtt, to: b}]");
});

test("a broker's clients get a protocol that its other kind speaks, and those of another broker keep theirs", () => {
  const clients = (kind: string, next: string, protocol: string) => {
    const text = `kind: Experiment\nspec:\n  apps: [{name: hub, ${kind}: {}}, {name: b, mosquitto: {}}, {name: c, publisher: {protocol: ${protocol}, to: hq/hub}, subscriber: {protocol: ${protocol}, to: hub}}, {name: d, subscriber: {protocol: ${protocol}, to: b}}]\n`;
    return [...after(text, (e) => e.useBroker(0, next)).matchAll(/protocol: ([\w-]+)/g)].map(([, word]) => word);
  };
  expect(clients("mosquitto", "prosody", "mqtt")).toEqual(["xmpp", "xmpp", "mqtt"]);
  expect(clients("prosody", "rabbitmq", "xmpp")).toEqual(["mqtt", "mqtt", "xmpp"]);
  expect(clients("rabbitmq", "vernemq", "amqp")).toEqual(["mqtt", "mqtt", "amqp"]);
  expect(clients("mosquitto", "rabbitmq", "mqtt")).toEqual(["mqtt", "mqtt", "mqtt"]);
  expect(clients("mosquitto", "prosody", "mqtt-udp")).toEqual(["mqtt-udp", "mqtt-udp", "mqtt-udp"]);
});

test("clients that name no broker follow the only one, and none of several", () => {
  const text = "kind: Experiment\nspec:\n  apps: [{name: hub, mosquitto: {}}, {name: c, publisher: {protocol: mqtt}}]\n";
  expect(after(text, (e) => e.useBroker(0, "zeromqBroker"))).toContain("publisher: {protocol: zeromq}");
  expect(after(text.replace("]\n", ", {name: b, mosquitto: {}}]\n"), (e) => e.useBroker(0, "zeromqBroker"))).toContain("publisher: {protocol: mqtt}");
});

test("a client that publishes and subscribes changes its protocol in both", () => {
  const spec = specOf(read(after(empty, (e) => e.useProtocol(1, "amqp"))).main ?? { document: 0, kind: "", apiVersion: "", name: "", object: {} });
  expect(spec.apps).toMatchObject([{}, { publisher: { protocol: "amqp" }, subscriber: { protocol: "amqp" } }]);
});

test("what is added has a name of its own and joins what is there", () => {
  expect(line(after(empty, (e) => e.addNode()), "name: node")).toBe("- {name: node, networks: [wan]}");
  expect(line(after(empty, (e) => e.addNetwork()), "name: net")).toBe("- {name: net, link: {rate: 1Mbit, delay: 20ms, loss: 0%}, subnet: 198.18.1.0/24}");
  expect(line(after(empty, (e) => e.addApp("subscriber")), "name: subscriber")).toBe('- {name: subscriber, subscriber: {protocol: mqtt, to: broker, topics: ["#"]}}');
});

test("an added client speaks its broker's protocol", () => {
  for (const [kind, protocol] of [["mosquitto", "mqtt"], ["rabbitmq", "mqtt"], ["prosody", "xmpp"], ["wsnBroker", "ws-notification"], ["zeromqBroker", "zeromq"]] as const) {
    const added = after(`kind: Experiment\nspec:\n  apps: [{name: hub, ${kind}: {}}]\n`, (e) => e.addApp("both"));
    expect(added).toContain(`publisher: {protocol: ${protocol}, to: hub, payload`);
    expect(added).toContain(`subscriber: {protocol: ${protocol}, to: hub, topics`);
  }
});

test("a node joins and leaves a network", () => {
  const two = after(empty, (e) => e.addNetwork());
  const joined = after(two, (e) => e.connect(0, "net", true));
  expect(line(joined, "name: hq")).toContain("networks: [wan, net]");
  expect(after(joined, (e) => e.connect(0, "net", false))).toBe(two);
  expect(after(joined, (e) => e.connect(0, "net", true))).toBe(joined);
});

test("free names and subnets are those that nobody has", () => {
  expect([freeIn([], "a"), freeIn(["a"], "a"), freeIn(["a", "a-2"], "a")]).toEqual(["a", "a-2", "a-3"]);
  expect(freeSubnet(["198.18.0.0/24", "198.18.2.0/24"])).toBe("198.18.1.0/24");
});

test("an app is named by what it does", () => {
  expect([{ mosquitto: {} }, { publisher: {}, subscriber: {} }, { image: "a" }, { messaging: {} }, { proxy: { peer: "a" } }, { proxy: {} }, { mqttsnGateway: {} }, {}].map(kindOf)).toEqual(["broker mosquitto", "publisher and subscriber", "own image", "messaging service", "near proxy", "far proxy", "gateway", "app"]);
});
