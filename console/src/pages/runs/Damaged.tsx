import { Alert, List, Text } from "@mantine/core";
import { RunLink } from "../../components/RunLink";
import type { ArchivedRun } from "./archived";

/** Damaged says which runs have records that could not be read. */
export function Damaged({ runs }: { runs: readonly ArchivedRun[] }) {
  const damaged = runs.filter(({ problem }) => problem !== "");
  if (damaged.length === 0) return null;
  return (
    <Alert color="orange" variant="outline" title={damaged.length === 1 ? "A run has damaged records" : `${damaged.length} runs have damaged records`}>
      <List size="sm" mah={200} tabIndex={0} aria-label="Runs with damaged records" style={{ overflow: "auto", overflowWrap: "anywhere" }}>
        {damaged.map((run) => (
          <List.Item key={run.uid}>
            <RunLink size="sm" run={run}>
              {run.name}
            </RunLink>
            <Text span inherit>
              {" "}
              ({run.uid}): {run.problem}
            </Text>
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
