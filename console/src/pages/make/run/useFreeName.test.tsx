import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, test, vi } from "vitest";
import "../../../testing/patience";
import { TextModel } from "../text/model";
import { useFreeName } from "./useFreeName";

const cluster = vi.hoisted(() => ({ names: ["quickstart"] }));

vi.mock("../../../kubernetes/hooks", async () => {
  const { useMemo } = await import("react");
  return {
    useObjects: () => {
      const names = cluster.names;
      return useMemo(() => ({ objects: names.map((name) => ({ metadata: { name } })) }), [names]);
    },
  };
});

const source = "kind: Experiment\nmetadata: {name: quickstart}\n";

async function open() {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify([{ name: "quickstart-2" }]))));
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => <QueryClientProvider client={client}>{children}</QueryClientProvider>;
  const model = new TextModel(source);
  const { rerender } = renderHook(({ namespace }) => useFreeName(model, source, namespace), { wrapper, initialProps: { namespace: "team" } });
  await waitFor(() => { expect(name(model)).toBe("quickstart-3"); });
  return { model, rerender };
}

function name(model: TextModel): string {
  return model.getSnapshot().readable.main?.name ?? "";
}

test("a name that cluster or archive have is changed to one that is free", async () => {
  const { model } = await open();
  expect(model.getSnapshot().undoable).toBe(true);
});

test("undo takes the automatic name back, and it stays so", async () => {
  const { model, rerender } = await open();
  act(model.undo);
  rerender({ namespace: "team" });
  expect(name(model)).toBe("quickstart");
  cluster.names = ["quickstart", "another"];
  rerender({ namespace: "team" });
  expect(name(model)).toBe("quickstart");
});

test("a text that was changed keeps its name in another namespace", async () => {
  const { model, rerender } = await open();
  act(() => { model.replace(model.getSnapshot().text.replace("quickstart-3", "mine")); });
  rerender({ namespace: "other" });
  expect(name(model)).toBe("mine");
});
