import { trackOf } from "../../components/map/api";
import { classOf } from "../../components/map/scale";
import { emptyScene, hopsFrom, paired, type Handle, type MapNode, type Scene } from "../../components/map/scene";
import { labelOf, type Plan, type Platform } from "./plan";
import type { Preview } from "./preview";

// APP-6: a friendly land unit that is present.
const symbol = "10031000000000000000";

/** home is where an empty map begins: the area of the synthetic scenarios. */
export const home = { latitude: 58.1925, longitude: 7.975 };

/** nodesOf the platforms that are edited. */
export function nodesOf(platforms: readonly Platform[]): MapNode[] {
  return platforms.map((platform) => ({ name: labelOf(platform), symbol, track: platform.waypoints }));
}

/** nodesOfPreview are the platforms of a scenario that is only shown. */
export function nodesOfPreview(preview: Preview | undefined): MapNode[] {
  return (preview?.platforms ?? []).map(({ number, track }) => ({ name: String(number), symbol, track: trackOf(track) }));
}

/** handlesOf the selected platform are its waypoints. */
export function handlesOf(platform: Platform | undefined, selected: number | undefined): Handle[] {
  return (platform?.waypoints ?? []).map((place, index) => ({ id: `${platform?.number}/${index}`, place, label: platform?.waypoints.length === 1 ? "" : String(index + 1), selected: index === selected }));
}

/** sceneOf an editor. Links are those of the preview: how far their pathloss is below the limit. */
export function sceneOf(nodes: readonly MapNode[], preview: Preview | undefined, labels: ReadonlyMap<number, string>, selected: string | undefined, handles: readonly Handle[]): Scene {
  const links = (preview?.links ?? []).flatMap(({ from, to, pathloss }) => {
    const [sender, receiver] = [labels.get(from), labels.get(to)];
    return sender === undefined || receiver === undefined ? [] : [{ from: sender, to: receiver, value: (preview?.limitDB ?? 0) - pathloss }];
  });
  return {
    ...emptyScene,
    nodes,
    links: paired(links, (value) => classOf("margin", value)),
    handles,
    terrain: preview?.terrain ?? undefined,
    hops: selected === undefined ? emptyScene.hops : hopsFrom(links, selected),
    selected,
    home,
  };
}

/** labelsOf platforms by number. */
export function labelsOf(platforms: readonly Platform[], preview: Preview | undefined): Map<number, string> {
  const labels = new Map((preview?.platforms ?? []).map(({ number }) => [number, String(number)]));
  for (const platform of platforms) labels.set(platform.number, labelOf(platform));
  return labels;
}

/** asPlan is a plan with the movement of a scenario of any format. */
export function asPlan(preview: Preview, plan: Omit<Plan, "platforms">): Plan {
  const platforms = preview.platforms.filter(({ track }) => track.length > 0).map(({ number, track }) => ({ number, name: "", waypoints: trackOf(track) }));
  return { ...plan, platforms };
}
