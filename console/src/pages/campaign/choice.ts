import type { Axis, Fixed } from "./round";

export interface MapChoice {
  x: Axis | undefined;
  y: Axis | undefined;
  fixed: Fixed;
  /** others are the axes that are neither across nor down. */
  others: Axis[];
}

/** choiceOf axes by an address. Without one the axis with most levels goes across, the next one down, and the others are together. */
export function choiceOf(axes: readonly Axis[], choice: (name: string) => string | undefined): MapChoice {
  const byLevels = [...axes].sort((a, b) => b.levels.length - a.levels.length);
  const named = (parameter: string) => axes.find(({ name }) => name === choice(parameter));
  const down = named("y");
  const x = named("x") ?? byLevels.find((axis) => axis !== down);
  const y = down && down !== x ? down : byLevels.find((axis) => axis !== x);
  const others = axes.filter((axis) => axis !== x && axis !== y);
  const fixed: Fixed = {};
  for (const { name, levels } of others) {
    const level = choice(`axis.${name}`);
    if (level !== undefined && levels.includes(level)) fixed[name] = level;
  }
  return { x, y, fixed, others };
}
