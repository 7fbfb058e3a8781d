import { Box } from "@mantine/core";
import { useEffect, useRef } from "react";
import type { TextModel } from "./model";
import classes from "./Editor.module.css";

/** Editor shows the text as YAML. */
export function Editor({ model }: { model: TextModel }) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => (parent.current ? model.attach(parent.current) : undefined), [model]);
  return <Box ref={parent} className={classes.editor} />;
}
