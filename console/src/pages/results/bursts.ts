import type { BurstResult } from "../../archive/types";
import { duration, nothing } from "../../components/figures";
import type { Column } from "../../components/VirtualTable";

/** BurstRow has the bursts from publishers of a protocol, by the protocols of subscribers. */
export interface BurstRow {
  protocol: string;
  to: Record<string, BurstResult>;
}

/** burstRows has a row for each protocol of publishers, in their order. */
export function burstRows(bursts: readonly BurstResult[]): BurstRow[] {
  const rows = new Map<string, BurstRow>();
  for (const burst of bursts) {
    const row = rows.get(burst.publisherProtocol) ?? { protocol: burst.publisherProtocol, to: {} };
    row.to[burst.subscriberProtocol] = burst;
    rows.set(row.protocol, row);
  }
  return [...rows.values()].sort((a, b) => (a.protocol < b.protocol ? -1 : 1));
}

/** burstColumns has a column for each protocol of subscribers. */
export function burstColumns(bursts: readonly BurstResult[]): Column<BurstRow>[] {
  const protocols = [...new Set(bursts.map(({ subscriberProtocol }) => subscriberProtocol))].sort();
  const columns = protocols.map((protocol): Column<BurstRow> => ({ id: `to-${protocol}`, head: `To ${protocol}`, numeric: true, value: ({ to }) => to[protocol]?.seconds, show: ({ to }) => burstText(to[protocol]) }));
  return [{ id: "protocol", head: "From", value: (row) => row.protocol }, ...columns];
}

/** burstText is how long a burst took; where messages are missing, how many came. */
function burstText(burst: BurstResult | undefined): string {
  if (!burst) return nothing;
  return burst.seconds === null ? `${burst.received} of ${burst.messages}` : duration(burst.seconds);
}
