import { valueLabel, type Measure } from "./scale";
import type { RunLinks, RunMapData } from "./api";
import { lengthLabel } from "./grid";
import type { NodeRow } from "./NodeList";
import { drawn, type MapLink, type MapNode, type Scene } from "./scene";
import { movesAt, placeAt } from "./tracks";

/** describeScene is the text in place of the picture. */
export function describeScene(scene: Scene, at: number): string {
  const placed = scene.nodes.filter((node) => placeAt(node.track, at));
  const moving = placed.filter((node) => movesAt(node.track, at)).length;
  const parts = [scene.inCircle ? `${count(placed.length, "node")} without positions, in a circle` : `${count(placed.length, "node")} of ${scene.nodes.length}, ${moving} on the move`];
  parts.push(count(scene.links.length, "link"));
  if (scene.jammers.length > 0) parts.push(`${count(scene.jammers.length, "jammer")}: ${scene.jammers.map(({ name }) => name).join(", ")}`);
  if (scene.silent.size > 0) parts.push(count(scene.silent.size, "silent radio"));
  return `Map with ${parts.join("; ")}.`;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

const mostNames = 10;

function shortened(names: readonly string[]): string {
  return names.length <= mostNames ? names.join(", ") : `${names.slice(0, mostNames).join(", ")} and ${names.length - mostNames} more`;
}

/** rowsOf the list beside the map. */
export function rowsOf(scene: Scene, at: number): NodeRow[] {
  return scene.nodes.map((node) => ({ name: node.name, words: wordsOf(scene, node, at) }));
}

function wordsOf(scene: Scene, node: MapNode, at: number): string {
  const words: string[] = [];
  const hops = scene.hops.get(node.name);
  if (!placeAt(node.track, at)) words.push("no position yet");
  if (scene.silent.has(node.name)) words.push("silent");
  if (hops !== undefined && hops > 0) words.push(count(hops, "hop"));
  else if (hops === undefined && scene.hops.size > 0 && scene.selected !== undefined && node.name !== scene.selected) words.push(scene.isDirect ? "no link lately" : "no way");
  return words.join(", ");
}

/** describeLink says both directions of a link. */
export function describeLink(link: MapLink, measure: Measure): string {
  return `${link.from} → ${link.to}: ${valueLabel(measure, link.forward)}; ${link.to} → ${link.from}: ${valueLabel(measure, link.backward)}`;
}

function hopsWords(scene: Scene, links: RunLinks | undefined): string {
  if (links?.hopsByRoutes) return "along its OLSR routes";
  return scene.isDirect ? "over direct links on which something was received lately, as the network has no routing" : "over links on which something was received lately";
}

/** remarksOf a map are what its reader has to know about it. */
export function remarksOf(data: RunMapData, links: RunLinks | undefined, scene: Scene, network: string): string[] {
  const remarks = (data.missing ?? []).map((what) => `The map lacks ${what}`);
  if (data.networks.some(({ name, links: reported }) => name === network && reported === false)) {
    remarks.push(`Network ${network} has no radios. A link shows which share of its sender's frames was delivered lately.`);
  }
  const missing = scene.nodes.filter(({ track }) => track.length === 0).map(({ name }) => name);
  if (missing.length > 0) remarks.push(`Without a position, and so not on the map: ${shortened(missing)}.`);
  const from = scene.selected ?? links?.hopsFrom;
  if (from && scene.hops.size > 0) remarks.push(`Hops are counted from ${from}, ${hopsWords(scene, links)}.`);
  for (const { name, rangeMetres } of scene.jammers) {
    if (rangeMetres !== undefined) remarks.push(`The noise of jammer ${name} is above that of the radios themselves up to ${lengthLabel(rangeMetres)}.`);
  }
  const shown = drawn(scene.links, scene.selected).length;
  if (shown < scene.links.length) remarks.push(`${shown} of ${scene.links.length} links are drawn: those of the selected node, then the best.`);
  if (links?.leftOut) remarks.push(`${links.leftOut} more links have a lower SINR than those of the map.`);
  return remarks;
}

/** happeningsRemark says that a run had no changes, or that one may not be known yet: a run that goes on is read now and then. */
export function happeningsRemark(count: number, live: boolean): string | undefined {
  if (!live) return count === 0 ? "No network changes in this run." : undefined;
  const behind = "A change by hand stands here some seconds after it was applied.";
  return count === 0 ? `No network changes are known yet. ${behind}` : behind;
}
