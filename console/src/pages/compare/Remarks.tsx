import { List, Title } from "@mantine/core";
import type { Comparison, Remark } from "../../archive/comparison";

/** Remarks are what the comparison is to be read with. */
export function Remarks({ comparison }: { comparison: Comparison }) {
  return (
    <>
      <RemarkList title="Warnings" remarks={comparison.warnings} />
      <RemarkList title="Gaps" remarks={comparison.gaps} />
      <RemarkList title="Notes" remarks={comparison.notes} />
    </>
  );
}

function RemarkList({ title, remarks }: { title: string; remarks: Remark[] | null }) {
  if (!remarks || remarks.length === 0) return null;
  return (
    <section>
      <Title order={2} size="h3">
        {title}
      </Title>
      <List size="sm">
        {remarks.map(({ what, reason }) => (
          <List.Item key={`${what} ${reason}`}>
            <strong>{what}</strong>: {reason}
          </List.Item>
        ))}
      </List>
    </section>
  );
}
