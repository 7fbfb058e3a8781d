import { brokers, forwarders, mqttBrokers, protocolsOf } from "../../../components/brokers";
import { modelOf } from "../../../components/models";
import type { Edit } from "../text/edits";
import type { Written } from "../text/read";
import { specOf, specPath } from "../text/read";
import { at, fieldsOf, listOf, withValue, wordOf, wordsOf, type Fields, type Path } from "../text/values";
import { namesOf } from "../text/complete";
import { firstOf, nodesOf } from "./nodes";
import { memberships, renamed, type Named } from "./references";
import { beginningOf, foreign, sourceOf, type Source } from "./requests";

export function brokerOf(app: Fields): string | undefined {
  return brokers.find((kind) => app[kind] !== undefined);
}

const words: Readonly<Record<string, string>> = { messaging: "messaging service", mqttsnGateway: "gateway", mgen: "flows of MGEN", script: "script of messages", own: "app" };

/** kindOf an app in a word or two. */
export function kindOf(app: Fields): string {
  const kind = brokerOf(app);
  if (kind) return `broker ${kind}`;
  if (app.publisher && app.subscriber) return "publisher and subscriber";
  if (app.proxy) return fieldsOf(app.proxy).peer === undefined ? "far proxy" : "near proxy";
  for (const each of ["publisher", "subscriber", "messaging", "mediator", "mgen", "script", "mqttsnGateway"]) if (app[each]) return words[each] ?? each;
  return app.image || app.command ? "own image" : "app";
}

/** newPattern of a publisher: a message of 200 bytes every 10 s on average. */
export const newPattern = "0.0 ON 1 POISSON [0.1 200]\n";

/** newFlows are a flow to a node, and what receives it there. */
export function newFlows(node: string): string {
  return `0.0 LISTEN UDP 5000\n${node === "" ? "" : `1.0 ON 1 UDP DST ${node}/5000 PERIODIC [1 200]\n`}`;
}

/** needed are the lists that an experiment has to have. */
const needed: readonly Named[] = ["networks", "apps", "nodes"];

/** Editing makes edits of one object. */
export class Editing {
  readonly spec: Fields;

  constructor(readonly written: Written) {
    this.spec = specOf(written);
  }

  /** path of a field of the experiment's spec, in the object. */
  path(inSpec: Path): Path {
    return [...specPath(this.written.kind), ...inSpec];
  }

  set(inSpec: Path, value: unknown): Edit {
    return { document: this.written.document, path: this.path(inSpec), value };
  }

  rename(inSpec: Path, rename: string): Edit {
    return { document: this.written.document, path: this.path(inSpec), rename };
  }

  /** renameReferences to an element of a list that has got another name. */
  renameReferences(list: Named, before: string, after: string): Edit[] {
    const { document, object } = this.written;
    const { inSpec, inMatrix } = renamed(this.spec, fieldsOf(object.spec).matrix, list, before, after);
    return [...inSpec.map(({ path, word }) => this.set(path, word)), ...inMatrix.map(({ path, word }) => ({ document, path: ["spec", "matrix", ...path], value: word }))];
  }

  /** useWaveform gives a network a named waveform instead of its own model. */
  useWaveform(network: number, waveform: string): Edit[] {
    const place: Path = ["networks", network];
    const model = modelOf(fieldsOf(at(this.spec, place)));
    if (!model) return [this.set([...place, "waveform"], waveform)];
    return [this.rename([...place, model], "waveform"), this.set([...place, "waveform"], waveform)];
  }

  /** useModel gives a network a model of its own, with the values that it begins with. */
  useModel(network: number, model: string, values: Fields): Edit[] {
    const place: Path = ["networks", network];
    const now = fieldsOf(at(this.spec, place));
    const before = modelOf(now) ?? (now.waveform !== undefined ? "waveform" : undefined);
    if (before === model) return [this.set([...place, model], values)];
    return [...(before ? [this.rename([...place, before], model)] : []), this.set([...place, model], values)];
  }

  /** useBroker replaces the kind of a broker. Its settings go. Its clients get a protocol that the other kind speaks. */
  useBroker(app: number, kind: string): Edit[] {
    const place: Path = ["apps", app];
    const now = fieldsOf(at(this.spec, place));
    const before = brokerOf(now);
    const [protocol = "mqtt", ...more] = protocolsOf[kind] ?? [];
    if (!before || before === kind) return [];
    const lost = (protocolsOf[before] ?? []).filter((each) => ![protocol, ...more].includes(each));
    return [...this.turn(place, before, kind, {}), ...this.protocolsTo(wordOf(now.name), lost).map((path) => this.set(path, protocol))];
  }

  /** protocolsTo a broker are the fields of its clients and mediators' legs that have one of some protocols. One that names no broker uses the only one. */
  private protocolsTo(broker: string, protocols: readonly string[]): Path[] {
    const apps = listOf(this.spec.apps).map(fieldsOf);
    const isOnly = apps.filter(brokerOf).length === 1;
    const isClient = ({ to, protocol }: Fields) => protocols.includes(wordOf(protocol)) && (to === undefined ? isOnly : wordOf(to).split("/").at(-1) === broker);
    const legs = (app: Fields): Path[] => listOf(fieldsOf(app.mediator).legs).map((_, leg) => ["mediator", "legs", leg]);
    const clients = apps.flatMap((app, i): Path[] => [["publisher"], ["subscriber"], ...legs(app)].map((part) => ["apps", i, ...part]));
    return clients.filter((client) => isClient(fieldsOf(at(this.spec, client)))).map((client) => [...client, "protocol"]);
  }

  /** useProtocol of an app that publishes, subscribes or both, as one client speaks one protocol. */
  useProtocol(app: number, protocol: string): Edit[] {
    const now = fieldsOf(at(this.spec, ["apps", app]));
    return ["publisher", "subscriber"].filter((part) => now[part] !== undefined).map((part) => this.set(["apps", app, part, "protocol"], protocol));
  }

  /** useTransport of a messaging service, or useServer: settings that it does not have then go. */
  useTransport(app: number, transport: string): Edit[] {
    return this.useSetting(["apps", app, "messaging"], "transport", transport);
  }

  /** useServer of a messaging service, whose nodes get its requests; none if the name is empty. */
  useServer(app: number, name: string): Edit[] {
    return this.useSetting(["apps", app, "messaging"], "server", name === "" ? undefined : name);
  }

  private useSetting(place: Path, name: string, value: string | undefined): Edit[] {
    const gone = foreign(fieldsOf(withValue(at(this.spec, place), [name], value)));
    return [this.set([...place, name], value), ...gone.map((setting) => this.set([...place, setting], undefined))];
  }

  /** useScriptProtocol of a script of messages: one has a broker and QoS, the other a network. */
  useScriptProtocol(app: number, protocol: string): Edit[] {
    const place: Path = ["apps", app, "script"];
    const now = fieldsOf(at(this.spec, place));
    const gone = (protocol === "mqtt-udp" ? ["to", "qos"] : ["network"]).filter((setting) => now[setting] !== undefined);
    const to = protocol === "mqtt" && now.to === undefined ? [this.set([...place, "to"], this.mqttBroker())] : [];
    return [this.set([...place, "protocol"], protocol), ...gone.map((setting) => this.set([...place, setting], undefined)), ...to];
  }

  /** usePattern makes a publisher's messages follow a script of MGEN, or one each period again. */
  usePattern(app: number, isPattern: boolean): Edit[] {
    const place: Path = ["apps", app, "publisher"];
    const { pattern, payload, phase } = fieldsOf(at(this.spec, place));
    if (isPattern === (pattern !== undefined)) return [];
    if (!isPattern) return this.turn(place, "pattern", "period", "10s");
    const gone = [...(payload === undefined ? [] : ["payload"]), ...(phase === "spread" || phase === "aligned" ? ["phase"] : [])];
    return [...this.turn(place, "period", "pattern", { mgen: newPattern }), ...gone.map((setting) => this.set([...place, setting], undefined))];
  }

  /** useSource gives a messaging service other requests, or none. */
  useSource(app: number, source: Source | undefined): Edit[] {
    const place: Path = ["apps", app, "messaging"];
    const before = sourceOf(fieldsOf(at(this.spec, place)));
    if (before === source) return [];
    if (source === undefined) return before === undefined ? [] : [this.set([...place, before], undefined)];
    const beginning = beginningOf(source, this.firstNode(app));
    return before === undefined ? [this.set([...place, source], beginning)] : this.turn(place, before, source, beginning);
  }

  /** firstNode that runs an app. */
  firstNode(app: number): string {
    return firstOf(nodesOf(this.spec, wordOf(at(this.spec, ["apps", app, "name"]))));
  }

  /** turn a field into another one, in its place. */
  turn(object: Path, before: string, after: string, value: unknown): Edit[] {
    if (before === after) return [];
    return [this.rename([...object, before], after), this.set([...object, after], value)];
  }

  private next(list: string): number {
    return listOf(this.spec[list]).length;
  }

  addNode(name = ""): Edit[] {
    const node = { name: name || freeIn(namesOf(this.spec.nodes), "node"), networks: namesOf(this.spec.networks).slice(0, 1) };
    return [this.set(["nodes", this.next("nodes")], node)];
  }

  addNetwork(): Edit[] {
    const networks = listOf(this.spec.networks).map(fieldsOf);
    const network = { name: freeIn(namesOf(networks), "net"), link: { rate: "1Mbit", delay: "20ms", loss: "0%" }, subnet: freeSubnet(networks.map((n) => wordOf(n.subnet))) };
    return [this.set(["networks", networks.length], network)];
  }

  addApp(kind: string): Edit[] {
    if (kind === "proxy") return this.addProxies();
    const apps = listOf(this.spec.apps).map(fieldsOf);
    const broker = apps.find(brokerOf);
    const to = broker ? { to: wordOf(broker.name) } : {};
    const [protocol = "mqtt"] = protocolsOf[(broker && brokerOf(broker)) ?? ""] ?? [];
    const publisher = { protocol, ...to, payload: "geojson", period: "10s" };
    const subscriber = { protocol, ...to, topics: ["#"] };
    const messaging = { transport: "http", push: { to: "all", period: "10s" } };
    const mqttsnGateway = { to: this.mqttBroker() };
    const leg = this.newLeg([]);
    const mediator = { legs: [leg, this.newLeg([leg])] };
    const node = firstOf(nodesOf(this.spec));
    const script = { ...(mqttsnGateway.to === "" ? { protocol: "mqtt-udp" } : { protocol: "mqtt", ...mqttsnGateway }), messages: beginningOf("messages", node) };
    const parts: Record<string, Fields> = { publisher: { publisher }, subscriber: { subscriber }, both: { publisher, subscriber }, messaging: { messaging }, mqttsnGateway: { mqttsnGateway }, mediator: { mediator }, script: { script }, mgen: { mgen: { script: newFlows(node) } }, own: { image: "registry.example/app:1", command: ["/app"] } };
    const stems: Record<string, string> = { publisher: "publisher", subscriber: "subscriber", both: "units", messaging: "service", mqttsnGateway: "gateway", mediator: "mediator", script: "chat", mgen: "flows", own: "app" };
    return this.add(["apps"], { name: freeIn(namesOf(apps), stems[kind] ?? "broker"), ...(parts[kind] ?? { [kind]: {} }) });
  }

  /** mqttBroker is the first one that speaks MQTT. */
  private mqttBroker(): string {
    const broker = listOf(this.spec.apps).map(fieldsOf).find((app) => mqttBrokers.some((kind) => app[kind] !== undefined));
    return wordOf(broker?.name);
  }

  /** newLeg of a mediator beside others: to the first broker that they do not go to, by its first protocol. */
  newLeg(others: readonly unknown[]): Fields {
    const taken = others.map((leg) => wordOf(fieldsOf(leg).to).split("/").at(-1));
    const broker = listOf(this.spec.apps).map(fieldsOf).find((app) => brokerOf(app) && !taken.includes(wordOf(app.name)));
    const [protocol = "mqtt"] = protocolsOf[(broker && brokerOf(broker)) ?? ""] ?? [];
    return { protocol, to: wordOf(broker?.name) };
  }

  /** addProxies adds a pair, as neither is of use without the other. */
  private addProxies(): Edit[] {
    const taken = namesOf(this.spec.apps);
    const far = freeIn(taken, "far");
    const pair = [{ name: freeIn(taken, "near"), proxy: { peer: far } }, { name: far, proxy: {} }];
    return pair.map((app, i) => this.set(["apps", this.next("apps") + i], app));
  }

  add(list: Path, element: Fields): Edit[] {
    return [this.set([...list, listOf(at(this.spec, list)).length], element)];
  }

  /** remove an element, and its name from the lists of others. A list that need not be there goes with its last one. */
  remove(list: Path, place: number): Edit[] {
    const named = needed.find((each) => list.length === 1 && each === list[0]);
    const others = named ? memberships(this.spec, named, wordOf(at(this.spec, [named, place, "name"]))) : [];
    const isLast = listOf(at(this.spec, list)).length === 1;
    return [...others, isLast && !named ? list : [...list, place]].map((path) => this.set(path, undefined));
  }

  /** emptied is what goes with a field: its object too, if that has no other. */
  emptied(field: Path): Path {
    const object = field.slice(0, -1);
    return Object.keys(fieldsOf(at(this.spec, object))).length > 1 ? field : object;
  }

  /** addEntry of the timeline, which starts or stops an app or silences a network. */
  addEntry(what: "start" | "stop" | "set"): Edit[] {
    if (what === "set") return this.add(["timeline"], { at: "30s", set: [this.newChange()] });
    const named = listOf(this.spec.timeline).flatMap((entry) => wordsOf(fieldsOf(entry)[what]));
    const apps = listOf(this.spec.apps).map(fieldsOf);
    const clients = namesOf(apps.filter((app) => forwarders.every((kind) => app[kind] === undefined) && app.proxy === undefined));
    const name = clients.find((each) => !named.includes(each)) ?? clients[0] ?? namesOf(apps)[0];
    const moment = what === "start" ? "10s" : wordOf(this.spec.duration) || "60s";
    return this.add(["timeline"], { at: moment, [what]: name === undefined ? [] : [name] });
  }

  /** newChange of a network is one that any model takes. */
  newChange(): Fields {
    return { network: namesOf(this.spec.networks)[0] ?? "", silent: true };
  }

  /** connect a node to a network, or take it off. */
  connect(node: number, network: string, connected: boolean): Edit[] {
    const place: Path = ["nodes", node, "networks"];
    const now = listOf(at(this.spec, place)).map(wordOf);
    if (now.includes(network) === connected) return [];
    if (!connected) return [this.set([...place, now.indexOf(network)], undefined)];
    return [now.length === 0 ? this.set(place, [network]) : this.set([...place, now.length], network)];
  }
}

/** freeIn finds a name that the others do not have: stem, stem-2 and so on. */
export function freeIn(taken: readonly string[], stem: string): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? stem : `${stem}-${n}`;
    if (!taken.includes(name)) return name;
  }
}

/** freeSubnet finds one of 198.18.0.0/15, which is for tests of networks, beside those of the other networks. */
export function freeSubnet(taken: readonly string[]): string {
  const used = new Set(taken.map((subnet) => /^198\.18\.(\d+)\./.exec(subnet)?.[1]));
  for (let n = 0; n < 255; n++) if (!used.has(String(n))) return `198.18.${n}.0/24`;
  return "198.19.0.0/24";
}
