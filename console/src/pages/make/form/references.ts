import { at, fieldsOf, isFields, listOf, withValue, wordOf, type Fields, type Path } from "../text/values";

/** Named are the lists whose elements others name. */
export type Named = "networks" | "apps" | "nodes";

/** fields that name an element of a list: their steps without places. */
const fields: Readonly<Record<Named, RegExp>> = {
  networks: /^(nodes\.networks|timeline\.set\.network|collect\.captures|apps\.\w+\.network)$/,
  apps: /^(nodes\.apps|timeline\.(start|stop)|apps\.((publisher|subscriber|script|mqttsnGateway)\.to|(publisher|subscriber)\.failover|mosquitto\.bridges\.to|mediator\.legs\.to|messaging\.(via|server)|proxy\.(peer|broker)))$/,
  nodes: /^(networks\.(base|links\.(from|to)|radios\.nodes|routing\.routes\.(nodes|to|via))|apps\.(messaging\.push|messaging\.messages|script\.messages)\.(from|to)|timeline\.set\.(from|to))$/,
};

/** destinations in a script of MGEN, which may be nodes, such as DST veh-1/5000. */
const destinations = /(\bDST\s+)([a-z][a-z0-9-]*)(?=\/)/gi;

/** namedBy are the lists of a word's parts, such as node/app, group/app, and in captures network/node or network/group. */
function namedBy(field: string, word: string): readonly Named[] {
  const isPair = word.includes("/");
  if (fields.networks.test(field)) return isPair ? ["networks", "nodes"] : ["networks"];
  if (fields.apps.test(field)) return isPair ? ["nodes", "apps"] : ["apps"];
  return fields.nodes.test(field) && !isPair ? ["nodes"] : [];
}

/** members are fields that an element leaves when it goes. A single name stays: only people know whose it should be. */
const members: Readonly<Partial<Record<Named, RegExp>>> = {
  networks: /^(nodes\.networks|timeline\.set\.network|collect\.captures)$/,
  apps: /^(nodes\.apps|timeline\.(start|stop)|apps\.(publisher|subscriber)\.failover)$/,
};

interface Reference {
  path: Path;
  word: string;
}

/** Renaming is what a word of a field becomes; itself where it does not follow. */
type Renaming = (field: string, word: string) => string;

/** renaming of an element of a list that has got another name; undefined if one of the names is another's too. */
function renaming(spec: Fields, list: Named, before: string, after: string): Renaming | undefined {
  const elements = listOf(spec[list]).map(fieldsOf);
  const [element, ...more] = elements.filter((each) => wordOf(each.name) === after);
  if (before === "" || !element || more.length > 0 || elements.some((each) => each.name === before || (each !== element && each.group === before))) return undefined;
  const next = (word: string) => (list === "nodes" ? nextOfNode(element, word, before, after) : word === before ? after : word);
  return (field, word) => {
    if (list === "nodes" && field === "apps.mgen.script") return word.replace(destinations, (_, before: string, host: string) => before + next(host));
    const named = namedBy(field, word);
    return word.split("/").map((part, i) => (named[i] === list ? next(part) : part)).join("/");
  };
}

/** renamed are the references to an element that has got another name, in the spec and in a campaign's matrix. */
export function renamed(spec: Fields, matrix: unknown, list: Named, before: string, after: string): { inSpec: Reference[]; inMatrix: Reference[] } {
  const next = renaming(spec, list, before, after);
  if (!next) return { inSpec: [], inMatrix: [] };
  const follow = (value: unknown, place: Path, field: (path: Path) => string) =>
    wordsIn(value, place).flatMap(({ path, word }) => {
      const now = next(field(path), word);
      return now === word ? [] : [{ path, word: now }];
    });
  const inMatrix = settingsOf(matrix).flatMap(({ place, setting: { path, value, values } }) => {
    const start = `${list}[${before}]`;
    const varied = wordOf(path).replaceAll(/\[[^\]]*\]/g, "");
    const own = wordOf(path).startsWith(start) ? [{ path: [...place, "path"], word: `${list}[${after}]${wordOf(path).slice(start.length)}` }] : [];
    const inside = (name: string, what: unknown) => follow(what, [...place, name], (at) => fieldOf([varied, ...at.slice(place.length + 1)]));
    return [...own, ...inside("value", value), ...inside("values", values)];
  });
  return { inSpec: follow(spec, [], fieldOf), inMatrix };
}

/** settingsOf a matrix are all that give a field of the spec a value, or several, with their places. */
function settingsOf(matrix: unknown): { place: Path; setting: Fields }[] {
  const each = (object: unknown, place: Path) => listOf(object).map((element, i) => ({ place: [...place, i], setting: fieldsOf(element) }));
  const axes = each(fieldsOf(matrix).axes, ["axes"]);
  const levels = axes.flatMap(({ place, setting }) => each(setting.levels, [...place, "levels"]));
  const points = each(fieldsOf(matrix).include, ["include"]);
  return [...axes, ...[...levels, ...points].flatMap(({ place, setting }) => each(setting.set, [...place, "set"]))];
}

/** memberships of an element in others' lists, the last first. There are none if another element has its name. */
export function memberships(spec: Fields, list: Named, name: string): Path[] {
  const field = members[list];
  if (!field || name === "" || listOf(spec[list]).filter((each) => fieldsOf(each).name === name).length > 1) return [];
  const places: Path[] = [];
  let rest: unknown = spec;
  for (const { path, word } of wordsIn(spec, []).reverse()) {
    const where = fieldOf(path);
    if (!field.test(where) || word.split("/")[namedBy(where, word).indexOf(list)] !== name) continue;
    const place = withEmptied(rest, where === "timeline.set.network" ? path.slice(0, -1) : path);
    places.push(place);
    rest = withValue(rest, place, undefined);
  }
  return places;
}

/** withEmptied is a place, or that of what would be empty without it: a list, a moment of the timeline, or collect. */
function withEmptied(spec: unknown, place: Path): Path {
  const [...above] = place;
  const last = above.pop();
  if (last === undefined || above.length === 0) return place;
  if (typeof last === "string" && (above[0] === "nodes" || above[0] === "apps")) return place; // a node or app is never removed
  const rest = withValue(at(spec, above), [last], undefined);
  const isEmpty = Array.isArray(rest) ? rest.length === 0 : Object.keys(fieldsOf(rest)).every((key) => key === "at" || key === "over");
  return isEmpty ? withEmptied(spec, above) : place;
}

function fieldOf(path: Path): string {
  return path.filter((step) => typeof step === "string").join(".");
}

/** nextOfNode is the new name of a node, of one of several equal ones, or of the group that they are without another. */
function nextOfNode(node: Fields, word: string, before: string, after: string): string {
  if (word === before) return node.count === undefined || node.group === undefined ? after : word;
  const isOne = node.count !== undefined && word.startsWith(`${before}-`) && /^\d+$/.test(word.slice(before.length + 1));
  return isOne ? after + word.slice(before.length) : word;
}

function wordsIn(value: unknown, path: Path): Reference[] {
  if (typeof value === "string") return [{ path, word: value }];
  if (Array.isArray(value)) return value.flatMap((each, place) => wordsIn(each, [...path, place]));
  return isFields(value) ? Object.keys(value).flatMap((name) => wordsIn(at(value, [name]), [...path, name])) : [];
}
