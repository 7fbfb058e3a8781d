import { afterEach } from "vitest";

// Tests of functions alone need no jsdom: `// @vitest-environment node`.
if (typeof window !== "undefined") {
  // jsdom has no media queries, which Mantine asks for.
  Object.defineProperty(window, "matchMedia", {
    configurable: true, // so that tests can stub it
    value: (query: string) => ({ matches: false, media: query, addEventListener: () => undefined, removeEventListener: () => undefined, addListener: () => undefined, removeListener: () => undefined }),
  });

  // Nor has it sizes and their changes.
  window.ResizeObserver = class {
    observe(): void {}
    unobserve(): void {}
    disconnect(): void {}
  };

  // Components that a test leaves mounted would run timers after jsdom has ended.
  const { cleanup } = await import("@testing-library/react");
  afterEach(cleanup);
}
