import type { Action } from "../../archive/types";
import { describeChange } from "../../components/radiochange";
import { secondsOf, span } from "../../components/time";
import type { Experiment, LiveChange } from "../../types";

type Spec = Experiment["spec"];

/** Bar is a time in which apps run, in seconds after T0. Without an end they run on. */
export interface Bar {
  from: number;
  to: number | undefined;
}

/** Mark is something that happens at one moment. */
export interface Mark {
  at: number;
  text: string;
  kind: "set" | "live" | "waiting";
}

/** Row of the timeline: an app, or the changes of networks. */
export interface Row {
  name: string;
  bars: Bar[];
  marks: Mark[];
}

export interface Timeline {
  rows: Row[];
  /** end of the axis, in seconds after T0. */
  end: number;
  /** list has everything in order of time, for those who read it. */
  list: { at: number; text: string }[];
}

interface Switch {
  at: number;
  verb: "start" | "stop";
  /** name of an app, or node/app or group/app. */
  name: string;
  /** over is the time over which the starts or stops are spread. */
  over: string | undefined;
}

/** timelineOf an experiment with the changes that were made by hand; elapsed seconds lengthen one without an end. */
export function timelineOf(spec: Spec, changes: LiveChange[], t0: string | undefined, elapsed: number): Timeline {
  const duration = spec.duration === undefined ? NaN : secondsOf(spec.duration);
  const switches = switchesOf(spec);
  const rows = appRows(spec, switches, Number.isNaN(duration) ? undefined : duration);
  const marks = [...plannedMarks(spec), ...liveMarks(changes, t0)].sort((a, b) => a.at - b.at);
  for (const [name, kinds] of [["networks", ["set"]], ["live changes", ["live", "waiting"]]] as const) {
    const own = marks.filter((mark) => (kinds as readonly string[]).includes(mark.kind));
    if (own.length > 0) rows.push({ name, bars: [], marks: own });
  }
  const moments = [...switches.map((s) => s.at), ...marks.map((m) => m.at)];
  const end = Math.max(1, ...moments, Number.isNaN(duration) ? Math.max(elapsed, 60) * 1.1 : duration);
  return { rows, end, list: listOf(switches, marks, duration) };
}

function switchesOf(spec: Spec): Switch[] {
  const switches: Switch[] = [];
  for (const entry of spec.timeline ?? []) {
    const at = secondsOf(entry.at);
    if (Number.isNaN(at)) continue;
    for (const name of entry.stop ?? []) switches.push({ at, verb: "stop", name, over: entry.over });
    for (const name of entry.start ?? []) switches.push({ at, verb: "start", name, over: entry.over });
  }
  return switches.sort((a, b) => a.at - b.at);
}

// An app that no entry starts runs from T0, and one that no entry stops until the end.
function appRows(spec: Spec, switches: Switch[], duration: number | undefined): Row[] {
  const rows: Row[] = [];
  for (const { name } of spec.apps) {
    const own = switches.filter((s) => appOf(s.name) === name);
    const started = new Set(own.filter((s) => s.verb === "start").map((s) => s.name));
    for (const target of new Set([...own.map((s) => s.name), ...(started.size === 0 ? [name] : [])])) {
      const fromT0 = !started.has(name) && !started.has(target);
      if (target === name && fromT0 && started.size > 0) continue; // its other nodes have a row below
      rows.push({ name: target, bars: barsOf(target, own, fromT0 ? 0 : undefined, duration), marks: [] });
    }
    if (started.size > 0 && !started.has(name) && runsElsewhere(spec, name, started)) {
      rows.push({ name: `${name} elsewhere`, bars: barsOf(name, own, 0, duration), marks: [] });
    }
  }
  return rows;
}

// Reports whether some node runs the app and no start names the node or its group.
function runsElsewhere(spec: Spec, app: string, started: Set<string>): boolean {
  return spec.nodes.some((node) => {
    const group = node.group ?? node.name;
    const named = [node.name, group].some((where) => started.has(`${where}/${app}`));
    const some = node.count !== undefined && [...started].filter((name) => name.startsWith(`${node.name}-`)).length === node.count;
    return node.apps?.includes(app) === true && !named && !some;
  });
}

function appOf(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

function barsOf(name: string, switches: Switch[], runsFrom: number | undefined, duration: number | undefined): Bar[] {
  const bars: Bar[] = [];
  let from = runsFrom;
  for (const one of switches) {
    if (one.name !== name && one.name !== appOf(name)) continue;
    if (one.verb === "start") from ??= one.at;
    else if (from !== undefined) {
      bars.push({ from, to: one.at });
      from = undefined;
    }
  }
  if (from !== undefined) bars.push({ from, to: duration });
  return bars;
}

function plannedMarks(spec: Spec): Mark[] {
  return (spec.timeline ?? []).flatMap((entry) => {
    const at = secondsOf(entry.at);
    return Number.isNaN(at) ? [] : (entry.set ?? []).map((change): Mark => ({ at, text: describeChange(change), kind: "set" }));
  });
}

function liveMarks(changes: LiveChange[], t0: string | undefined): Mark[] {
  if (!t0) return [];
  return changes.map((change) => {
    const applied = change.status?.appliesAt;
    const at = (Date.parse(applied ?? change.metadata.creationTimestamp ?? t0) - Date.parse(t0)) / 1000;
    const text = change.spec.changes.map(describeChange).join("; ");
    const refused = change.status?.conditions?.find((c) => c.type === "Applied" && c.status === "False");
    if (refused) return { at, text: `${text} (not applied: ${refused.message})`, kind: "waiting" };
    return { at, text: applied ? text : `${text} (not applied yet)`, kind: applied ? "live" : "waiting" };
  });
}

function listOf(switches: Switch[], marks: Mark[], duration: number): Timeline["list"] {
  const list = [
    ...switches.map(({ at, verb, name, over }) => ({ at, text: `${verb} ${name}${over ? ` over ${over}` : ""}` })),
    ...marks.map(({ at, text, kind }) => ({ at, text: kind === "set" ? text : `by hand: ${text}` })),
    ...(Number.isNaN(duration) ? [] : [{ at: duration, text: "end of the timeline" }]),
  ];
  return list.sort((a, b) => a.at - b.at);
}

/** executed says how many of the armed actions have their time behind them. */
export function executed(actions: Action[], elapsed: number): string {
  const past = actions.filter((action) => action.atNanoseconds / 1e9 <= elapsed).length;
  const next = actions.find((action) => action.atNanoseconds / 1e9 > elapsed);
  const coming = next ? `; next: ${next.verb} at T0+${span(next.atNanoseconds / 1e9)}` : "";
  return `${past} of ${actions.length} actions are due${coming}`;
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** ticksOf an axis from 0 to an end: round times, at most so many. */
export function ticksOf(end: number, most: number): number[] {
  const step = steps.find((s) => end / s <= most) ?? Math.ceil(end / most / 86400) * 86400;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
}
