// A release that an agent is to hand over to and that fails, in the way that its name says: see test/system/hand-over.test.ts, which copies it by those names.

import { basename } from "node:path";

const how = basename(process.argv[1]).replace(/\.mjs$/, "");
const { LISTEN_FDS: sockets } = process.env;
if (how === "crashes-at-start" || sockets === undefined) throw new Error("planted");
if (how === "says-anything")
  for (const said of [null, 7, "ready", { kind: "ready2" }, { kind: "failed", reason: {} }])
    process.send(said);
// It goes on, and hears nothing more.
if (how === "closes-its-channel") {
  process.disconnect();
  setInterval(() => {}, 1_000);
} else process.send({ kind: "ready" });
process.on("message", ({ kind }) => {
  if (kind === "take" && how === "dies-when-it-serves") {
    process.send({ kind: "serving" });
    process.kill(process.pid, "SIGKILL");
  } else if (kind === "take") process.exit(how === "crashes-when-it-takes-over" ? 7 : 0);
});
