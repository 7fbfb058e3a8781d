import { Button, CloseButton, FileButton, Group, Pill, Text } from "@mantine/core";
import { useState } from "react";
import { mostReferenceBytes, type ReferenceFile } from "../../archive/comparison";

interface ReferencePickerProps {
  file: ReferenceFile | undefined;
  onChange: (file: ReferenceFile | undefined) => void;
}

/** ReferencePicker reads a file of figures that are to stand beside those of the runs. The server checks it. */
export function ReferencePicker({ file, onChange }: ReferencePickerProps) {
  const [problem, setProblem] = useState<string>();
  const choose = async (chosen: File | null) => {
    if (!chosen) return;
    if (chosen.size > mostReferenceBytes) {
      setProblem(`${chosen.name} has ${chosen.size} bytes: want ${mostReferenceBytes} at most.`);
      return;
    }
    setProblem(undefined);
    onChange({ name: chosen.name, text: await chosen.text() });
  };
  return (
    <Group gap="xs">
      <FileButton accept=".csv,text/csv" onChange={(chosen) => void choose(chosen)}>
        {(props) => (
          <Button size="compact-sm" variant="default" {...props}>
            Reference figures from a file
          </Button>
        )}
      </FileButton>
      {file ? (
        <Pill size="md">
          <Group gap={4} wrap="nowrap">
            {file.name}
            <CloseButton
              size="xs"
              aria-label={`Leave out ${file.name}`}
              onClick={() => {
                onChange(undefined);
              }}
            />
          </Group>
        </Pill>
      ) : (
        <Text size="sm" c="dimmed">
          CSV of published or earlier figures; a campaign may have its own.
        </Text>
      )}
      {problem !== undefined && (
        <Text size="sm" c="red" role="alert">
          {problem}
        </Text>
      )}
    </Group>
  );
}
