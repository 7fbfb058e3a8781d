import "@mantine/core/styles.css";
import "./app/app.css";
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { cspNonce } from "./app/nonce";
import { logIn, onToken, sessionQuery } from "./app/session";
import { onUnknownUser, Refusal } from "./kubernetes/client";
import { router } from "./router";
import { theme } from "./theme/theme";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // A refusal would come again; only silence is worth another try.
      retry: (count, error) => count < 2 && !(error instanceof Refusal && error.status >= 400 && error.status < 500),
      staleTime: 5_000,
    },
  },
});

// A session may end while a page is open: the page then shows how to log in.
onUnknownUser(() => {
  void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
});

onToken(() => {
  window.location.reload();
});

const element = document.getElementById("root");
if (!element) throw new Error("index.html has no element with the id root");

// A wrong token shows as a session that is refused.
await logIn().catch(() => undefined);
createRoot(element).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => cspNonce}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
