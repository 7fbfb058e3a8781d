/** DiffLine is a line of two texts: in both, or only in the first or the second. */
export interface DiffLine {
  sign: " " | "-" | "+";
  text: string;
}

/** linesBetween two texts, by the longest common sequence of lines. */
export function linesBetween(before: string, after: string): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ sign: " ", text }));
  return [...same(a.slice(0, head)), ...between(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...same(a.slice(a.length - tail))];
}

// Beyond so many pairs of lines a difference is everything that was, then everything that is.
const mostPairs = 4_000_000;

function between(a: string[], b: string[]): DiffLine[] {
  if (a.length * b.length > mostPairs) return [...a.map(less), ...b.map(more)];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const get = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) common[i * width + j] = a[i] === b[j] ? get(i + 1, j + 1) + 1 : Math.max(get(i + 1, j), get(i, j + 1));
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i] ?? "" });
      i++;
      j++;
    } else if (get(i + 1, j) >= get(i, j + 1)) lines.push(less(a[i++] ?? ""));
    else lines.push(more(b[j++] ?? ""));
  }
  return [...lines, ...a.slice(i).map(less), ...b.slice(j).map(more)];
}

function less(text: string): DiffLine {
  return { sign: "-", text };
}

function more(text: string): DiffLine {
  return { sign: "+", text };
}

/** about keeps the changed lines and some around each; a gap is left out as undefined. */
export function about(lines: readonly DiffLine[], around = 2): (DiffLine | undefined)[] {
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - around), i + around + 1).some((line) => line.sign !== " "));
  return lines.flatMap((line, i) => (near[i] ? [line] : i === 0 || near[i - 1] ? [undefined] : []));
}
