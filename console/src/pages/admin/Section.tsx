import { Stack, Table, Title } from "@mantine/core";
import { useId, type ReactNode } from "react";

interface SectionProps {
  title: string;
  heads: readonly string[];
  /** rows of the table. */
  children: ReactNode;
  minWidth: number;
}

/** Section is a table with its title. */
export function Section({ title, heads, children, minWidth }: SectionProps) {
  const id = useId();
  return (
    <Stack gap="xs" component="section" aria-labelledby={id}>
      <Title order={2} size="h4" id={id}>
        {title}
      </Title>
      <Table.ScrollContainer minWidth={minWidth} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
        <Table aria-labelledby={id} verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              {heads.map((head) => (
                <Table.Th key={head}>{head}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>{children}</Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Stack>
  );
}
