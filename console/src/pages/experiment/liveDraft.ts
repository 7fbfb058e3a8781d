import type { Draft, Kind } from "../../components/livechange/draft";
import type { Place } from "../../components/map/projection";

/** beginning of a draft, from what is selected on the map. */
export function beginning(kind: Kind, network: string, node: string | undefined, link: { from: string; to: string } | undefined): Draft {
  const ends = kind === "change" ? { from: link?.from ?? node ?? "", to: link?.to ?? "" } : { from: kind === "silence" ? (node ?? "") : "", to: "" };
  return { kind, network, ...ends, ends: false, values: kind === "jammer" ? { name: "noise", power: "100W" } : {} };
}

/** changesOf what is selected on the map, by their names. Radios send to all, so that those of a link have one each. */
export function changesOf(model: string | undefined, network: string, node: string | undefined, link: { from: string; to: string } | undefined): { label: string; draft: Draft }[] {
  const change = (label: string, from?: string, ofLink?: typeof link) => ({ label, draft: beginning("change", network, from, ofLink) });
  if (model === "link") return [link ? change(`Change the link ${link.from} – ${link.to}`, undefined, link) : node ? change(`Change the links from ${node}`, node) : change(`Change network ${network}`)];
  const nodes = link ? [link.from, link.to] : node ? [node] : [];
  return nodes.length > 0 ? nodes.map((one) => change(`Change the radio of ${one}`, one)) : [change(`Change network ${network}`)];
}

/** placed is the draft of a jammer at a place. */
export function placed(draft: Draft, { latitude, longitude }: Place): Draft {
  return { ...draft, values: { ...draft.values, latitude: latitude.toFixed(5), longitude: longitude.toFixed(5) } };
}

/** placeOf the jammer of a draft; undefined while it has none. */
export function placeOf({ kind, ends, values }: Draft): Place | undefined {
  const { latitude = "", longitude = "" } = values;
  if (kind !== "jammer" || ends || latitude === "" || longitude === "") return undefined;
  const place = { latitude: Number(latitude), longitude: Number(longitude) };
  return Math.abs(place.latitude) <= 90 && Math.abs(place.longitude) <= 180 ? place : undefined;
}
