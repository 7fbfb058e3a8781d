import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useAccess } from "../kubernetes/hooks";
import { experiments } from "../kubernetes/kinds";

/** CloneLink makes another experiment of a run, by its UID or the name of its experiment. Who may not create one has no such button. */
export function CloneLink({ namespace, run, size }: { namespace: string; run: string; size: "xs" | "compact-sm" }) {
  const mayClone = useAccess({ group: experiments.group, resource: experiments.plural, namespace, verb: "create" });
  if (!mayClone) return null;
  return (
    <Button size={size} variant="default" renderRoot={(props) => <Link {...props} to="/new" search={{ from: `run:${namespace}/${run}` } as never} />}>
      Clone
    </Button>
  );
}
