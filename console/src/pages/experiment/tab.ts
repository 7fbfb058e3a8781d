import type { RunState } from "../../archive/types";
import type { Experiment } from "../../types";

/** What every part of the page gets. */
export interface TabProps {
  experiment: Experiment;
  /** state that the results server has of the run, when it has one. */
  state: RunState | undefined;
}
