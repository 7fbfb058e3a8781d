import { Anchor, List, Text } from "@mantine/core";
import { innerFirst, type Finding } from "./findings";

/** FindingList has what is wrong, each with its line. */
export function FindingList({ findings, fresh, onReveal }: { findings: readonly Finding[]; fresh: boolean; onReveal: (line: number) => void }) {
  const errors = findings.filter((f) => !f.warning).length;
  const warnings = findings.length - errors;
  const counted = (n: number, word: string) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const words = errors + warnings === 0 ? "No errors" : [errors > 0 ? counted(errors, "error") : "No errors", ...(warnings > 0 ? [counted(warnings, "warning")] : [])].join(", ");
  return (
    <div>
      <Text fw={600} role="status" data-testid="findings">
        {fresh ? words : "Checking"}
      </Text>
      <List size="sm" spacing={4}>
        {innerFirst(findings).map((finding, place) => (
          <List.Item key={place}>
            <Text span size="sm" fw={600}>
              {finding.warning ? "Warning" : "Error"}
            </Text>{" "}
            {finding.line !== undefined && (
              <Anchor
                component="button"
                type="button"
                size="sm"
                onClick={() => {
                  onReveal(finding.line ?? 1);
                }}
              >
                line {finding.line}
              </Anchor>
            )}{" "}
            {finding.path ? `${finding.path}: ` : ""}
            {finding.message}
          </List.Item>
        ))}
      </List>
    </div>
  );
}
