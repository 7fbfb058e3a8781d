import { Button, CloseButton, FileButton, Group, Pill, Text } from "@mantine/core";
import { useRef, useState } from "react";
import { mostReferenceBytes, type ReferenceFile } from "../../archive/comparison";

interface ReferencePickerProps {
  file: ReferenceFile | undefined;
  onChange: (file: ReferenceFile | undefined) => void;
}

/** readText of a file; refuses, in words, a file that is no UTF-8 text. */
async function readText(file: File): Promise<{ text: string } | { problem: string }> {
  let bytes: ArrayBuffer;
  try {
    bytes = await file.arrayBuffer();
  } catch {
    return { problem: `${file.name} cannot be read: it may have changed since it was chosen. Choose it again.` };
  }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { problem: `${file.name} is no text in UTF-8: save it as CSV in UTF-8.` };
  }
}

/** ReferencePicker reads a file of figures that are to stand beside those of the runs. The server checks it. */
export function ReferencePicker({ file, onChange }: ReferencePickerProps) {
  const [problem, setProblem] = useState<string>();
  // Without a reset a browser reports no change when the same file is chosen again.
  const reset = useRef<() => void>(null);
  const choose = async (chosen: File | null) => {
    if (!chosen) return;
    reset.current?.();
    if (chosen.size > mostReferenceBytes) {
      setProblem(`${chosen.name} has ${chosen.size} bytes: want ${mostReferenceBytes} at most.`);
      return;
    }
    const read = await readText(chosen);
    setProblem("problem" in read ? read.problem : undefined);
    if ("text" in read) onChange({ name: chosen.name, text: read.text });
  };
  return (
    <Group gap="xs">
      <FileButton resetRef={reset} accept=".csv,text/csv" onChange={(chosen) => void choose(chosen)}>
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
                setProblem(undefined);
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
