import type { RunState } from "../../archive/runs";
import type { Results as RunResults } from "../../archive/types";

/** What a part of the page is given. */
export interface PartProps {
  namespace: string;
  uid: string;
  state: RunState;
  results: RunResults;
}
