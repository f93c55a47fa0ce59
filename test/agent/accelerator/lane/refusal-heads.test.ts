// The answers to who is refused are made once for what they have in common; times to wait, which may be many, push out nothing but each other.

import { expect, test } from "vitest";
import { RefusalHeads } from "../../../../src/agent/accelerator/lane/refusal-heads.ts";
import { blockedAnswer, limitedAnswer } from "../../../../src/agent/accelerator/plain-answer.ts";

const told = { decisionId: "0123456789abcdef", hstsS: 0, nowMs: 0 };

test("a flood of times to wait leaves the answers to who is blocked", () => {
  const heads = new RefusalHeads();
  let made = 0;
  const block = (): string => {
    const answered = (id: string) => (made++, blockedAnswer("bad-set", id));
    return heads.make("blocked", "bad-set", answered, told).head;
  };
  const first = block();
  for (let waitS = 1; waitS <= 3_000; waitS++) {
    const answered = (id: string) => limitedAnswer(waitS, id);
    const { head, body } = heads.make("limited", `${waitS}`, answered, told);
    expect(head).toContain(`\r\nRetry-After: ${waitS}\r\n`);
    expect(head).toContain(`\r\nX-Accel-Decision: ${told.decisionId}\r\n`);
    expect(body).toContain(`in ${waitS} s`);
  }
  expect(block()).toBe(first);
  expect(made).toBe(1);
});
