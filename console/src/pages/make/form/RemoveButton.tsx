import { CloseButton } from "@mantine/core";
import type { Path } from "../text/values";
import { useForm } from "./context";

/** RemoveButton takes an element out of a list. */
export function RemoveButton({ list, place, what }: { list: Path; place: number; what: string }) {
  const { editing, edit } = useForm();
  return (
    <CloseButton
      aria-label={`Remove ${what}`}
      title={`Remove ${what}`}
      onClick={() => {
        edit(editing.remove(list, place));
      }}
    />
  );
}
