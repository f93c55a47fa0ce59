// Questions of central: answered, refused when there are too many, failed with the reason.

import { expect, test } from "vitest";
import { Questions } from "../../../src/agent/link/asked.ts";
import type { AnswerMessage, AskMessage } from "../../../src/wire/ask.ts";
import { AccelError } from "../../../src/core/faults.ts";

const ask = (id: string): AskMessage => ({
  type: "ask",
  id,
  deadline_ms: 500,
  dry_run: { domain: "a.test", host: null, patterns: ["path:x"] },
});

test("an answer carries the id, what was counted, or why nothing was", async () => {
  const answers: AnswerMessage[] = [];
  const asked = new Questions(async ({ patterns }, budgetMs) => {
    if (answers.length > 0) throw new AccelError("INDEX_BROKEN", "the index is closed");
    return { matched: patterns.length * budgetMs, samples: [] };
  });
  for (const id of ["one", "two"]) {
    asked.receive(ask(id), (answer) => answers.push(answer));
    await asked.idle();
  }
  expect(answers).toEqual([
    { type: "answer", id: "one", matched: 500, samples: [] },
    { type: "answer", id: "two", matched: 0, samples: [], error: "the index is closed" },
  ]);
});

test("a fourth question at a time is refused at once; later ones are taken again", async () => {
  const answers: AnswerMessage[] = [];
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const asked = new Questions(async () => {
    await gate;
    return { matched: 1, samples: [] };
  });
  const send = (answer: AnswerMessage): void => void answers.push(answer);
  for (const id of ["1", "2", "3", "4"]) asked.receive(ask(id), send);
  expect(answers).toMatchObject([{ id: "4", error: "too many questions at a time" }]);
  open();
  await asked.idle();
  asked.receive(ask("5"), send);
  await asked.idle();
  expect(answers.map(({ id, error }) => [id, error])).toEqual([
    ["4", "too many questions at a time"],
    ["1", undefined],
    ["2", undefined],
    ["3", undefined],
    ["5", undefined],
  ]);
});
