// `.ci/run` makes the system that `booted.ts` copies ahead of the tests.

import { ensureBareDebian } from "./booted.ts";

ensureBareDebian();
