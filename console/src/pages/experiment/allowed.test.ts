import { expect, test, vi } from "vitest";
import { allowElements } from "./allowed";

test("a style attribute is set through the element's style, which needs no leave of the policy", () => {
  const setAttribute = vi.spyOn(Element.prototype, "setAttribute");
  const end = allowElements();
  const element = document.createElement("span");
  element.setAttribute("style", "color: rgb(10, 200, 30);");
  element.setAttribute("style", `${element.getAttribute("style") ?? ""}background-color: rgb(1, 2, 3);`);
  element.setAttribute("role", "listitem");
  expect([element.style.color, element.style.backgroundColor, element.getAttribute("role")]).toEqual(["rgb(10, 200, 30)", "rgb(1, 2, 3)", "listitem"]);
  expect(setAttribute.mock.calls.map(([name]) => name)).toEqual(["role"]);
  end();
});

test("a style element carries the nonce while any terminal is open, and none after the last", () => {
  const hasNonce = () => document.createElement("style").hasAttribute("nonce");
  const ends = [allowElements(), allowElements()];
  expect(hasNonce()).toBe(true);
  ends[0]?.();
  ends[0]?.(); // a second time is none
  expect(hasNonce()).toBe(true);
  ends[1]?.();
  expect([hasNonce(), Object.hasOwn(document, "createElement")]).toEqual([false, false]);
});
