// The encoder process: makes pictures smaller, one at a time, and is killed by main when one takes too long or too much memory.

import { PictureEncoder } from "./images/picture-encoder.ts";
import type { ToEncoder } from "./images/encoder-messages.ts";

// It lies beside the program, or nowhere: a host that makes no pictures smaller need not have it.
const encoder = new PictureEncoder(
  async () => (await import("sharp")).default,
  () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
);

process.on("message", (asked) => {
  // Main sends nothing else. It may be gone by now.
  void encoder
    .answer(asked as ToEncoder)
    .then((answer) => process.send?.(answer, undefined, undefined, () => undefined));
});

// Nobody is left to answer to.
// Its end waits for nothing, least of all for the picture that it is at.
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
