import { Group, Text } from "@mantine/core";
import { noRoom } from "../../app/drafts";
import { Question } from "../../components/Question";
import type { EditorState } from "./useEditor";

/** DraftLine says that a plan differs from what is saved, and discards it. */
export function DraftLine({ editor, onDiscard }: { editor: EditorState; onDiscard: () => void }) {
  if (!editor.isChanged) return null;
  const words = editor.isFull ? noRoom : editor.isOld ? "The Scenario was changed after this draft was begun. Saving the draft takes that change back." : "This draft is not saved.";
  return (
    <Group gap="sm" justify="space-between">
      <Text size="sm" flex={1} miw={160}>
        {words}
      </Text>
      <Question button="Discard draft" title="Discard the draft?" what="All changes since the last save are lost." onYes={onDiscard} />
    </Group>
  );
}
