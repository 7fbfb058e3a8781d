/** placeText of a place in the queue: beyond 10 the operator rounds it up. */
export function placeText(place: number): string {
  if (place === 0) return "no place in the queue";
  return place > 10 ? `at most place ${place}` : `place ${place}`;
}

/** placeCell of a queue's table. Who may read the whole queue knows places exactly. */
export function placeCell(place: number, rounded: boolean): string {
  if (place === 0) return "none";
  return rounded && place > 10 ? `at most ${place}` : String(place);
}
