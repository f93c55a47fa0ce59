// The root of a thread in tests that counts unreviewed bots and then ends in the way that it is told.

import { workerData, type MessagePort } from "node:worker_threads";
import { UnreviewedTeller } from "../../../src/agent/bots/unreviewed/unreviewed-teller.ts";

export type Telling = {
  readonly port: MessagePort;
  readonly requests: number;
  readonly end: "exit" | "throw" | "hang";
};

// The test starts this thread with nothing else.
const { port, requests, end } = workerData as Telling;

const teller = new UnreviewedTeller(port);
process.once("exit", () => teller[Symbol.dispose]());
for (let no = 0; no < requests; no++)
  teller.count("a.example", { name: "curl", description: "A tool", isFake: false });
if (end === "exit") process.exit(0);
if (end === "throw") throw new Error("nobody catches this");
setInterval(() => {}, 1_000);
