/**
 * Colours that people with any colour blindness can tell apart (Okabe and Ito, 2008).
 * Nothing is said by colour alone: a word or a shape says it too.
 */
export const palette = {
  blue: "#0072B2",
  orange: "#E69F00",
  green: "#009E73",
  red: "#D55E00",
  sky: "#56B4E9",
  purple: "#CC79A7",
  yellow: "#F0E442",
  grey: "#7f8c8d",
} as const;

/** series are the colours of curves, in order. */
export const series: readonly string[] = [palette.blue, palette.orange, palette.green, palette.red, palette.sky, palette.purple];
