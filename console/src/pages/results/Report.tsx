import { Anchor, Group, Stack, Text } from "@mantine/core";
import { filePath, reportPath } from "../../archive/runs";
import classes from "./Report.module.css";

/** Report shows the run's report in place. It has no origin, so that nothing in it can act as the user. */
export function Report({ namespace, uid }: { namespace: string; uid: string }) {
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text size="sm">The report is one file that needs nothing else.</Text>
        <Anchor href={filePath(namespace, uid, "results/report.html")} download="report.html" size="sm">
          Download it
        </Anchor>
      </Group>
      <iframe className={classes.report} src={reportPath(namespace, uid)} sandbox="allow-scripts" title="Report of the run" referrerPolicy="no-referrer" />
    </Stack>
  );
}
