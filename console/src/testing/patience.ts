import { configure } from "@testing-library/react";

// Pages with many rows take seconds to draw on a busy machine.
configure({ asyncUtilTimeout: 20_000 });
