import { createTheme, type MantineColorsTuple } from "@mantine/core";

// Shades about the palette's blue. The seventh has white text on it, and is text on white: its contrast is over 6 to 1.
const blue: MantineColorsTuple = ["#e6f3fb", "#cde4f2", "#9bc8e6", "#66abd9", "#3d93cf", "#0072B2", "#00619a", "#005485", "#00466f", "#003557"];

export const theme = createTheme({
  primaryColor: "blue",
  primaryShade: 6,
  colors: { blue },
  fontFamily: "system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, monospace",
  defaultRadius: "sm",
  // Titles in the colour of an alert have too little contrast.
  components: { Alert: { styles: { title: { color: "var(--mantine-color-text)" } } } },
});
