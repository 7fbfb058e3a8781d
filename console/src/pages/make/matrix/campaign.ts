import { isExact } from "../../../components/exact";
import type { Edit } from "../text/edits";
import { at, equal, fieldsOf, listOf, wordOf, type Fields } from "../text/values";
import { documentsOf, read, specPath, type Written } from "../text/read";
import { parse } from "yaml";

/** asCampaign makes a campaign of a text's experiment; undefined if its layout forbids that. Comments and layout of the spec stay, a level deeper. */
export function asCampaign(text: string): string | undefined {
  const main = read(text).main;
  const range = main?.kind === "Experiment" ? documentsOf(text)[main.document]?.range : undefined;
  if (!main || !range) return undefined;
  const [from, , to] = range;
  const converted = text.slice(0, from) + documentAsCampaign(text.slice(from, to)) + text.slice(to);
  const made = read(converted).main;
  const isWhole = made?.kind === "Campaign" && made.document === main.document && equal(at(made.object, specPath("Campaign")), main.object.spec);
  return isWhole ? converted : undefined;
}

function documentAsCampaign(text: string): string {
  const lines = text.split("\n");
  const spec = lines.findIndex((line) => /^spec:\s*(#.*)?$/.test(line));
  if (spec < 0) return text;
  const rest = lines.slice(spec + 1);
  const length = rest.findIndex((line) => /^[^\s#]/.test(line));
  const body = length < 0 ? rest : rest.slice(0, length);
  const after = length < 0 ? [] : rest.slice(length);
  const named = (line: string) => line.replace(/^kind:\s*Experiment\b/, "kind: Campaign");
  const deeper = body.map((line) => (line === "" ? line : `    ${line}`));
  return [...lines.slice(0, spec).map(named), "spec:", "  repeats: 1", "  parallelism: 1", "  matrix:", "    axes: []", "  template:", "    spec:", ...deeper, ...after.map(named)].join("\n");
}

/** Axis of a campaign's matrix. */
export interface Axis {
  name: string;
  /** path of the field that takes the values; empty if the axis has levels of several fields. */
  path: string;
  values: unknown[];
  levels: { name: string; set: { path: string; value: unknown }[] }[];
}

export function axesOf(campaign: Written): Axis[] {
  const matrix = fieldsOf(fieldsOf(campaign.object.spec).matrix);
  return listOf(matrix.axes).map(fieldsOf).map((axis) => ({
    name: wordOf(axis.name),
    path: wordOf(axis.path),
    values: listOf(axis.values),
    levels: listOf(axis.levels).map(fieldsOf).map((level) => ({
      name: wordOf(level.name),
      set: listOf(level.set).map(fieldsOf).map((one) => ({ path: wordOf(one.path), value: one.value })),
    })),
  }));
}

/** MatrixEditing makes edits of a campaign. */
export class MatrixEditing {
  constructor(private readonly campaign: Written) {}

  private edit(path: (string | number)[], value: unknown): Edit {
    return { document: this.campaign.document, path: ["spec", ...path], value };
  }

  addAxis(): Edit[] {
    const axes = axesOf(this.campaign);
    const axis = { name: `axis-${axes.length + 1}`, path: "", values: [] };
    return [axes.length === 0 ? this.edit(["matrix", "axes"], [axis]) : this.edit(["matrix", "axes", axes.length], axis)];
  }

  removeAxis(axis: number): Edit[] {
    return [this.edit(["matrix", "axes", axis], undefined)];
  }

  name(axis: number, name: string): Edit[] {
    return [this.edit(["matrix", "axes", axis, "name"], name)];
  }

  path(axis: number, path: string): Edit[] {
    return [this.edit(["matrix", "axes", axis, "path"], path)];
  }

  values(axis: number, words: readonly string[]): Edit[] {
    return [this.edit(["matrix", "axes", axis, "values"], words.map(valueOf))];
  }

  addLevel(axis: number): Edit[] {
    const now = axesOf(this.campaign)[axis];
    const count = now?.levels.length ?? 0;
    const level = { name: `level-${count + 1}`, set: [] as Fields[] };
    return [count === 0 ? this.edit(["matrix", "axes", axis, "levels"], [level]) : this.edit(["matrix", "axes", axis, "levels", count], level)];
  }

  /** asLevels gives an axis levels, which set several fields, instead of one field's values. */
  asLevels(axis: number): Edit[] {
    const now = axesOf(this.campaign)[axis];
    if (!now) return [];
    const levels = now.values.map((value) => ({ name: wordOf(value) || "level", set: [{ path: now.path, value }] }));
    const place = ["matrix", "axes", axis];
    return [this.edit([...place, "path"], undefined), this.edit([...place, "values"], undefined), this.edit([...place, "levels"], levels)];
  }

  removeLevel(axis: number, level: number): Edit[] {
    return [this.edit(["matrix", "axes", axis, "levels", level], undefined)];
  }

  levelName(axis: number, level: number, name: string): Edit[] {
    return [this.edit(["matrix", "axes", axis, "levels", level, "name"], name)];
  }

  setting(axis: number, level: number, setting: number, part: "path" | "value", word: string): Edit[] {
    return [this.edit(["matrix", "axes", axis, "levels", level, "set", setting, part], part === "path" ? word : valueOf(word))];
  }

  addSetting(axis: number, level: number): Edit[] {
    const count = axesOf(this.campaign)[axis]?.levels[level]?.set.length ?? 0;
    const path = ["matrix", "axes", axis, "levels", level, "set"];
    const setting = { path: "", value: "" };
    return [count === 0 ? this.edit(path, [setting]) : this.edit([...path, count], setting)];
  }

  removeSetting(axis: number, level: number, setting: number): Edit[] {
    return [this.edit(["matrix", "axes", axis, "levels", level, "set", setting], undefined)];
  }
}

/** valueOf a word as YAML reads it: 5 is a number, 5s is text. A number that would be rounded stays text. */
export function valueOf(word: string): unknown {
  try {
    const value: unknown = parse(word);
    return isExact(value) ? value : word;
  } catch {
    return word;
  }
}

/** textOf a value, in the form that valueOf reads. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return valueOf(value) === value ? value : JSON.stringify(value);
  return value === undefined ? "" : JSON.stringify(value);
}
