// A release that an agent is to hand over to and that fails, in the way that its name says: see test/system/hand-over.test.ts, which links to it by those names.

import { basename } from "node:path";

const how = basename(process.argv[1]).replace(/\.mjs$/, "");
const { LISTEN_FDS: sockets } = process.env;
if (how === "crashes-at-start" || sockets === undefined) throw new Error("planted");
process.send({ kind: "ready" });
process.on("message", ({ kind }) => {
  if (kind === "take") process.exit(how === "crashes-when-it-takes-over" ? 7 : 0);
});
