import { palette } from "../../theme/palette";

/** Inks are the colours of a plot on a light or dark page. */
export interface Inks {
  /** mark is of whatever has one colour. */
  mark: string;
  /** box is the area of a box plot's box. */
  box: string;
  /** bad is of losses and failures. */
  bad: string;
  /** part is of a second kind of the same thing. */
  part: string;
}

const light: Inks = { mark: palette.blue, box: palette.sky, bad: palette.red, part: palette.orange };
const dark: Inks = { mark: palette.sky, box: palette.blue, bad: palette.red, part: palette.orange };

export function inksOf(scheme: "light" | "dark"): Inks {
  return scheme === "dark" ? dark : light;
}
