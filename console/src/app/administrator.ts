import { useAccess } from "../kubernetes/hooks";

/** useIsAdministrator reports whether the user may read the hosts of the cluster; undefined until it is known. */
export function useIsAdministrator(): boolean | undefined {
  return useAccess({ verb: "list", group: "", resource: "nodes" });
}
