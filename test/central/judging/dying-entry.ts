// A judging thread that dies of some documents, and never ends with others.

import { parentPort } from "node:worker_threads";
import type { Question } from "../../../src/central/judging/judge-messages.ts";

export type Content = "dies" | "exits" | "fills the heap" | "never ends" | "";

parentPort?.on("message", (question: Question) => {
  // The test sends nothing else.
  const content = question.op === "devlove" ? (question.content as Content) : "";
  if (content === "dies") throw new Error("of this document");
  if (content === "exits") process.exit(3);
  if (content === "fills the heap") {
    const held: object[] = [];
    for (;;) held.push(Array.from({ length: 1_000 }, (_, no) => ({ no })));
  }
  if (content === "never ends") for (;;);
  parentPort?.postMessage({ ok: true, devlove: { domains: {} } });
});
