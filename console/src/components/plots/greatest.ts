/** greatest returns the items with the greatest values, in the given order, if there are more than can be drawn. */
export function greatest<Item>(items: readonly Item[], most: number, valueOf: (item: Item) => number): Item[] {
  const chosen = new Set([...items].sort((a, b) => valueOf(b) - valueOf(a)).slice(0, most));
  return items.filter((item) => chosen.has(item));
}
