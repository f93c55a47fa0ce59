// A process that collects what its start left, says so, and goes on.

import { collectStartGarbage } from "../../src/base/start-garbage.ts";

collectStartGarbage({
  firstMs: 10,
  collect: () => void process.stdout.write("collected\n"),
});
setInterval(() => undefined, 1_000);
