import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answer, openPage } from "../../testing/page";
import type { Experiment } from "../../types";
import { MapTab } from "./MapTab";

vi.mock("../../kubernetes/hooks", () => ({ useAccess: () => true, useObjects: () => ({ objects: [], error: null }) }));

const experiment = {
  metadata: { name: "amber", namespace: "team", uid: "u" },
  spec: {},
  status: { phase: "Running", t0: "2026-01-01T00:00:00Z" },
} as unknown as Experiment;

const map = {
  networks: [{ name: "vhf", model: "tdma" }, { name: "hf", model: "tdma" }],
  nodes: [
    { name: "hq", networks: ["vhf"], track: [[0, 58.1, 7.9]] },
    { name: "veh", networks: ["hf"], track: null },
  ],
};

beforeEach(() => {
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  vi.stubGlobal("ResizeObserver", class { observe() {} unobserve() {} disconnect() {} });
  answer({ "/session": { mode: "local", user: "ann", groups: [], namespace: "team" }, "/map": map, "/links": { links: [] } });
});

test("a radio is silent on the map from the second on in which it was silenced", async () => {
  answer({ "/session": { mode: "local", user: "ann", groups: [], namespace: "team" }, "/map": { ...map, silences: [{ network: "vhf", node: "hq", fromSeconds: 42 }] }, "/links": { links: [] } });
  open("/?network=vhf&at=42");
  expect(await screen.findByRole("img", { name: "Map with 1 node of 1, 0 on the move; 0 links; 1 silent radio." })).toBeTruthy();
});

function open(address = "/") {
  return openPage("/", () => <MapTab experiment={experiment} />, address);
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("a map that is open at the end of a run is read once more, with what others knew of positions", async () => {
  const answers: Record<string, unknown> = { "/session": { mode: "local", user: "ann", groups: [], namespace: "team" }, "/map": map, "/links": { links: [] } };
  const asked = answer(answers);
  const asks = () => asked.filter((path) => path.endsWith("/map")).length;
  let end: () => void = () => undefined;
  function Page() {
    const [phase, setPhase] = useState("Analysing");
    end = () => { setPhase("Succeeded"); };
    return <MapTab experiment={{ ...experiment, status: { ...experiment.status, phase } as NonNullable<Experiment["status"]> }} />;
  }
  openPage("/", Page, "/");
  await screen.findByRole("slider");
  expect(asks()).toBe(1);
  answers["/map"] = { ...map, nodes: [{ ...map.nodes[0], reported: [[1, 58, 7.8]] }] };
  act(() => { end(); });
  expect(await screen.findByText("reported position")).toBeTruthy();
  expect(asks()).toBe(2);
});

test("the map of an experiment that waits is not asked for", async () => {
  const asked = answer({});
  openPage("/", () => <MapTab experiment={{ ...experiment, status: { phase: "Queued" } }} />, "/");
  expect(await screen.findByText("The map begins when the nodes are up.")).toBeTruthy();
  expect(asked).toEqual([]);
});

const notice = "No node of this network has a position";

test("on a network with positions, a jammer can take the middle of the map", async () => {
  open();
  fireEvent.click(await screen.findByRole("button", { name: "Place a jammer" }));
  expect(screen.queryByText(notice, { exact: false })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Take the middle of the map" }));
  expect(Number(screen.getByLabelText<HTMLInputElement>("Latitude").value)).toBeCloseTo(58.1);
});

test("on a network without positions, a jammer cannot take a made-up place", async () => {
  open();
  fireEvent.click(await screen.findByRole("radio", { name: "hf" }));
  fireEvent.click(screen.getByRole("button", { name: "Place a jammer" }));
  await waitFor(() => { expect(screen.queryByText(notice, { exact: false })).not.toBeNull(); });
  expect(screen.queryByRole("button", { name: "Take the middle of the map" })).toBeNull();
  screen.getByText("Type the jammer's position: the map has no places.");
});

test("network, node and moment of a map stand in its address", async () => {
  const router = open("/?network=vhf&node=hq&at=42&links=delivered");
  const slider = await screen.findByRole("slider");
  expect(slider.getAttribute("aria-valuenow")).toBe("42");
  expect(screen.getByRole("button", { name: "Change the radio of hq" })).toBeTruthy();
  expect(screen.getByRole<HTMLInputElement>("radio", { name: "Delivered share" }).checked).toBe(true);
  fireEvent.click(screen.getByRole("button", { name: "Go live" }));
  fireEvent.click(screen.getByRole("radio", { name: "hf" }));
  await waitFor(() => { expect(router.state.location.search).toEqual({ network: "hf", links: "delivered" }); });
});

test("each of many networks can be chosen, as a list has room for all", async () => {
  const networks = Array.from({ length: 16 }, (_, i) => ({ name: `company-${i + 1}`, model: "tdma" }));
  answer({ "/session": { mode: "local", user: "ann", groups: [], namespace: "team" }, "/map": { ...map, networks }, "/links": { links: [] } });
  const router = open();
  fireEvent.change(await screen.findByRole("combobox", { name: "Network" }), { target: { value: "company-16" } });
  await waitFor(() => { expect(router.state.location.search).toEqual({ network: "company-16" }); });
});
