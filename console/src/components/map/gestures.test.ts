// @vitest-environment node
import { expect, test } from "vitest";
import { Hands, keyed, wheelFactor, type Gestures } from "./gestures";

function recorded(grabs = false): { said: string[]; gestures: Gestures } {
  const said: string[] = [];
  const say = (word: string) => (...values: unknown[]) => void said.push([word, ...values.map((v) => JSON.stringify(v))].join(" "));
  return { said, gestures: { pan: say("pan"), zoom: say("zoom"), fit: say("fit"), point: say("point"), click: say("click"), drag: say("drag"), drop: say("drop"), grab: () => grabs } };
}

test("a press without a move is a click", () => {
  const { said, gestures } = recorded();
  const hands = new Hands(gestures);
  hands.press(1, { x: 10, y: 10 });
  hands.move(1, { x: 12, y: 11 });
  hands.release(1, { x: 12, y: 11 });
  expect(said).toEqual(['click {"x":12,"y":11}']);
});

test("a hand on the ground moves the map, and clicks nothing", () => {
  const { said, gestures } = recorded();
  const hands = new Hands(gestures);
  hands.press(1, { x: 10, y: 10 });
  hands.move(1, { x: 30, y: 15 });
  hands.release(1, { x: 30, y: 15 });
  expect(said).toEqual(["pan 20 5"]);
});

test("a hand on something that can be dragged drags it", () => {
  const { said, gestures } = recorded(true);
  const hands = new Hands(gestures);
  hands.press(1, { x: 10, y: 10 });
  hands.move(1, { x: 30, y: 15 });
  hands.release(1, { x: 30, y: 15 });
  expect(said).toEqual(['drag {"x":30,"y":15}', 'drop {"x":30,"y":15}']);
});

test("a second finger ends a drag where the first one is", () => {
  const { said, gestures } = recorded(true);
  const hands = new Hands(gestures);
  hands.press(1, { x: 10, y: 10 });
  hands.move(1, { x: 30, y: 15 });
  hands.press(2, { x: 200, y: 200 });
  expect(said.at(-1)).toBe('drop {"x":30,"y":15}');
});

test("a second finger moves nothing that was not dragged", () => {
  const { said, gestures } = recorded(true);
  const hands = new Hands(gestures);
  hands.press(1, { x: 10, y: 10 });
  hands.press(2, { x: 200, y: 200 });
  expect(said).toEqual([]);
});

test("two fingers that part enlarge what is between them", () => {
  const { said, gestures } = recorded();
  const hands = new Hands(gestures);
  hands.press(1, { x: 0, y: 0 });
  hands.press(2, { x: 100, y: 0 });
  hands.move(2, { x: 200, y: 0 });
  expect(said).toEqual(["pan 50 0", 'zoom 2 {"x":100,"y":0}']);
});

test("keys move, enlarge and fit the map; others are left alone", () => {
  const { said, gestures } = recorded();
  expect(["ArrowLeft", "+", "0", "Tab"].map((key) => keyed(key, gestures))).toEqual([true, true, true, false]);
  expect(said).toEqual(["pan 60 0", "zoom 1.5 ", "fit"]);
});

test("the wheel enlarges forwards and never by much at once", () => {
  expect(wheelFactor(-100, 0)).toBeGreaterThan(1);
  expect(wheelFactor(100, 0) * wheelFactor(-100, 0)).toBeCloseTo(1, 9);
  expect(wheelFactor(-1e6, 0)).toBe(wheelFactor(-200, 0));
});
