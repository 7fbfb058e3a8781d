import { List, Stack, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { headlineGroup } from "../../archive/runs";
import { count, percent } from "../../components/figures";
import { boxesOf } from "../../components/plots/boxes";
import { BoxFigure } from "../../components/plots/BoxFigure";
import { DotsFigure } from "./DotsFigure";
import type { PartProps } from "./part";
import { reasonsOf } from "./words";

/** Requests shows response times, receipts and failures by reason. */
export function Requests({ namespace, uid, state, results }: PartProps) {
  const boxes = useMemo(
    () => boxesOf([...(results.groups ?? []), ...(results.publishers ?? [])].map(({ name, requests }) => ({ name, quantiles: requests?.responseSeconds }))),
    [results],
  );
  const requests = headlineGroup(results).requests ?? results.requests;
  const name = state.plan.name;
  if (!requests) return <Text>This run had no requests.</Text>;
  const reasons = reasonsOf(requests.failed);
  return (
    <Stack>
      <section>
        <Title order={2} size="h3">
          What became of {count(requests.triggered)} requests
        </Title>
        <List>
          <List.Item>
            {count(requests.receipts)} had a receipt ({percent(requests.receiptPercent)}).
          </List.Item>
          {reasons.map(([reason, n]) => (
            <List.Item key={reason}>
              {count(n)} failed: {reason}.
            </List.Item>
          ))}
          <List.Item>{count(requests.outstanding)} had neither a receipt nor a failure at the end of the drain.</List.Item>
          {requests.retransmissions !== null && <List.Item>The protocol itself sent requests again {count(requests.retransmissions)} times.</List.Item>}
        </List>
      </section>
      <BoxFigure title="Response time by group and publisher" file={`${name}-response-times`} boxes={boxes} what="response time" none="no request had a receipt." />
      <DotsFigure
        namespace={namespace}
        uid={uid}
        t0={state.plan.t0}
        title="Response time of requests over time"
        path="results/requests.csv"
        column="responseSeconds"
        of="requests with a receipt"
        file={`${name}-response-times-over-time`}
      />
    </Stack>
  );
}
