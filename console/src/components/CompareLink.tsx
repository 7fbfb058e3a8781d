import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";

/** compareSearch is the parameters of the comparison of runs, each NAMESPACE/UID. */
export function compareSearch(runs: readonly string[]): never {
  // The router knows no parameters of a page that reads them by useChoices.
  return { run: [...runs] } as never;
}

/** CompareLink opens the comparison of these runs, to which others can be added there. */
export function CompareLink({ runs, children = "Compare" }: { runs: readonly string[]; children?: string }) {
  return (
    <Button component={Link} to="/compare" search={compareSearch(runs)} size="compact-sm" variant="default">
      {children}
    </Button>
  );
}
