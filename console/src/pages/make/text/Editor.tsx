import { Box, Text } from "@mantine/core";
import { useEffect, useRef } from "react";
import { keysId } from "./extensions";
import type { TextModel } from "./model";
import classes from "./Editor.module.css";

/** Editor shows the text as YAML. */
export function Editor({ model }: { model: TextModel }) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => (parent.current ? model.attach(parent.current) : undefined), [model]);
  return (
    <div>
      <Box ref={parent} className={classes.editor} />
      <Text id={keysId} size="sm" c="dimmed">
        Tab indents. To leave the text by the keyboard, press Escape, then Tab.
      </Text>
    </div>
  );
}
