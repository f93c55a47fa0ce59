// The inside of a judging thread: it answers each question with a verdict.

import type { MessagePort, Transferable } from "node:worker_threads";
import { compareManifests } from "../../wire/manifest-changes.ts";
import { judgeManifest, pathWith } from "../../wire/manifest-judgement.ts";
import { validateDevlove } from "../../wire/devlove-validate.ts";
import type { Question, Verdicts } from "./judge-messages.ts";

/**
 * Serves until the port is closed, or the thread is ended from outside. An error ends the thread, and the
 * caller is told.
 */
export function serveJudge(port: MessagePort): void {
  port.on("message", (question: Question) => {
    const verdict = judge(question);
    port.postMessage(verdict, moved(verdict));
  });
}

function judge(question: Question): Verdicts[Question["op"]] {
  switch (question.op) {
    case "manifest":
      return judgeManifest(question.bytes);
    case "path":
      return pathWith(question.bytes, question.sha256, question.size);
    case "changes":
      return compareManifests(question.before, question.bytes);
    case "devlove":
      return validateDevlove(question.schema, question.content, question.context);
    default:
      return question satisfies never;
  }
}

/** Names the lists to move: those of a million contents change their thread instead of being copied. */
function moved(verdict: Verdicts[Question["op"]]): Transferable[] {
  if (typeof verdict !== "object" || !("facts" in verdict)) return [];
  const { digests, sizes } = verdict.facts;
  return [digests.buffer, sizes.buffer].filter((buffer) => buffer instanceof ArrayBuffer);
}
