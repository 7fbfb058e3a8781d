import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ArchivedRun } from "./archived";

/** RunLink leads to the page of an archived run. */
export function RunLink({ run: { namespace, name, uid } }: { run: ArchivedRun }) {
  return (
    <Anchor size="sm" underline="always" renderRoot={(props) => <Link {...props} to="/ns/$namespace/runs/$uid" params={{ namespace, uid }} />}>
      {name}
    </Anchor>
  );
}
