import { useRight, type Right } from "../kubernetes/hooks";

/** useAdministration is the right to read the hosts of the cluster. */
export function useAdministration(): Right {
  return useRight({ verb: "list", group: "", resource: "nodes" });
}
