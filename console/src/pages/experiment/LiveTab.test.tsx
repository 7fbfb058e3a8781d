import { screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { openPage } from "../../testing/page";
import LiveTab from "./LiveTab";

vi.mock("./metrics", () => ({ useNodeFigures: () => ({ data: { at: 1, contentBytes: 0, receivers: [] }, error: null }) }));

// jsdom has no canvas, on which curves are drawn.
vi.mock("../../components/Chart", () => ({ Chart: ({ title, written }: { title: string; written: (value: number) => string }) => <p>{`${title}: ${[0, 0.5, 1].map(written).join(", ")}`}</p> }));

test("the marks of a rate below a byte a second differ", async () => {
  const experiment = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: {}, status: { phase: "Running", t0: "2030-01-01T00:00:00Z" } } as never;
  openPage("/", () => <LiveTab experiment={experiment} state={undefined} />, "/");
  expect((await screen.findByText(/^Content a second: /)).textContent).toBe("Content a second: 0 B/s, 0.500 B/s, 1.00 B/s");
});
