import { groupOf } from "../topology/topology";
import { fieldsOf, listOf, wordOf, wordsOf, type Fields } from "../text/values";

const mostOfOne = 24;

/** nodeNames are those of groups and of nodes. Of many equal nodes only the group is named. */
export function nodeNames(nodes: readonly Fields[]): string[] {
  return [...new Set([...nodes.map(groupOf), ...nodes.flatMap(eachOf)])].filter((name) => name !== "");
}

function eachOf(node: Fields): string[] {
  const name = wordOf(node.name);
  if (node.count === undefined) return [name];
  const count = Number(node.count);
  return count <= mostOfOne ? Array.from({ length: count }, (_, i) => `${name}-${i + 1}`) : [];
}

/** firstOf some nodes, by its own name. */
export function firstOf([node = {}]: readonly Fields[]): string {
  return node.count === undefined ? wordOf(node.name) : `${wordOf(node.name)}-1`;
}

/** nodesOf an experiment, those that run an app if one is named. */
export function nodesOf(spec: Fields, app?: string): Fields[] {
  const nodes = listOf(spec.nodes).map(fieldsOf);
  return app === undefined ? nodes : nodes.filter((node) => wordsOf(node.apps).includes(app));
}

/** appReferences are what a timeline may start and stop: apps, also those of one group or node. */
export function appReferences(spec: Fields, apps: readonly string[]): string[] {
  return [...apps, ...apps.flatMap((app) => nodeNames(nodesOf(spec, app)).map((name) => `${name}/${app}`))];
}
