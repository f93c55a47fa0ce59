// The matcher's process: whatever becomes of a job, the next one finds a process that can answer.

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MatchProcess } from "../../../../src/agent/cache/clearing/matcher-child.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { entryScript } from "../rig.ts";

/** Does what the job's first pattern says. */
const script = `process.on("message", ({ patterns: [what] }) => {
  if (what === "hang") return;
  if (what === "spin") for (;;) {}
  if (what === "exit") process.exit(9);
  if (what === "fail") return process.send({ kind: "failed", reason: "no", damaged: false, overBudget: false });
  process.send({ kind: "matched", ids: process.pid });
});
process.once("disconnect", () => process.exit(0));`;

const job = (what: string) => ({ kind: "match", patterns: [what] }) as never;
const answerMsMax = 60_000;

test.each([
  ["hang", 50, "over the budget of 50 ms", true],
  ["spin", 50, "over the budget of 50 ms", true],
  ["exit", answerMsMax, "the matcher ended: 9", false],
  ["fail", answerMsMax, "no", false],
])(
  "a job that makes it %s fails, and the next one is answered at once by another process",
  async (what, budgetMs, reason, overBudget) => {
    using scripts = tempDir();
    using matcher = new MatchProcess(entryScript(scripts.path, script));
    const first = await matcher.run(job("answer"), answerMsMax);
    expect(first.kind).toBe("matched");
    expect(await matcher.run(job("answer"), answerMsMax)).toEqual(first);
    expect(await matcher.run(job(what), budgetMs)).toMatchObject({
      kind: "failed",
      reason,
      overBudget,
    });
    const next = await matcher.run(job("answer"), answerMsMax);
    expect(next.kind).toBe("matched");
    expect(next).not.toEqual(first);
  },
);

test("none is left when it is disposed of, under a job neither", async () => {
  using scripts = tempDir();
  const entry = entryScript(scripts.path, script);
  const running = (): number =>
    readdirSync("/proc").filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(scripts.path);
      } catch {
        return false;
      }
    }).length;
  const matcher = new MatchProcess(entry);
  const answered = await matcher.run(job("answer"), answerMsMax);
  expect(answered.kind).toBe("matched");
  expect(running()).toBe(1);
  const hanging = matcher.run(job("hang"), answerMsMax);
  matcher[Symbol.dispose]();
  expect(await hanging).toMatchObject({ kind: "failed", reason: "the matcher ended: SIGKILL" });
  await until("all have ended", () => running() === 0);
});
