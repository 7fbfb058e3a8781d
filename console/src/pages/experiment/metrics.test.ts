// @vitest-environment node
import { expect, test } from "vitest";
import { parseMetrics } from "../../archive/prometheus";
import { figuresOf } from "./metrics";

const text = `vignette_experiment_sender_content_bytes_total{node="hq",app="a"} 100
vignette_experiment_sender_content_bytes_total{node="hq",app="b"} 20
vignette_experiment_receiver_deliveries_offered{node="hq"} 10
vignette_experiment_receiver_deliveries_received{node="hq"} 10
vignette_experiment_receiver_deliveries_offered{node="veh"} 10
vignette_experiment_receiver_deliveries_received{node="veh"} 4
vignette_experiment_receiver_deliveries_offered{node="idle"} 0
`;

test("content is summed over apps, and who misses most comes first", () => {
  const { contentBytes, receivers } = figuresOf(parseMetrics(text));
  expect(contentBytes).toBe(120);
  expect(receivers).toEqual([
    { node: "veh", offered: 10, received: 4 },
    { node: "hq", offered: 10, received: 10 },
    { node: "idle", offered: 0, received: 0 },
  ]);
});
