// Before a test file whose coverage is recorded: what it has run is written down at its end, for its process may be killed afterwards.

import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

afterAll(() => takeCoverage());
