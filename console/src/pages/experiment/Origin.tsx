import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { RunState } from "../../archive/types";
import { Moment } from "../../components/Moment";
import { RunLink } from "../../components/RunLink";
import type { Experiment } from "../../types";
import { originOf } from "./state";

/** Origin says who made the experiment, when, and from what. */
export function Origin({ experiment: e, state }: { experiment: Experiment; state: RunState | undefined }) {
  const { campaign, earlier, createdWith } = originOf(e);
  const namespace = e.metadata.namespace ?? "";
  const run = state?.plan.rerunOf ?? state?.plan.basedOn;
  return (
    <Group gap="md" fz="sm" c="dimmed">
      <Text inherit>
        Created <Moment time={e.metadata.creationTimestamp} />
        {createdWith && !campaign ? ` with ${createdWith}` : ""}
      </Text>
      {campaign && (
        <Text inherit>
          By campaign{" "}
          <Anchor inherit underline="always" renderRoot={(props) => <Link {...props} to="/ns/$namespace/campaigns/$name" params={{ namespace, name: campaign.name }} />}>
            {campaign.name}
          </Anchor>
          {campaign.point && `, point ${campaign.point}`}
          {campaign.round && `, round ${campaign.round}`}
        </Text>
      )}
      {earlier && (
        <Text inherit>
          {earlier.relation}{" "}
          <RunLink inherit run={earlier}>
            {earlier.name || run?.name || earlier.uid}
          </RunLink>
        </Text>
      )}
      <Text inherit>Seed {e.spec.seed ?? 1}</Text>
    </Group>
  );
}
