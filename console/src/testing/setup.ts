// jsdom has no media queries, which Mantine asks for. Tests of functions alone need no jsdom: `// @vitest-environment node`.
if (typeof window !== "undefined") {
  Object.defineProperty(window, "matchMedia", {
    value: (query: string) => ({ matches: false, media: query, addEventListener: () => undefined, removeEventListener: () => undefined, addListener: () => undefined, removeListener: () => undefined }),
  });
}
