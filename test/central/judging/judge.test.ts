// Judging in threads: what they say, in which order, and what becomes of questions that they die of, never end with, or are stopped at.

import { afterEach, expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { Judge } from "../../../src/central/judging/judge.ts";
import { JudgeWorker } from "../../../src/central/judging/judge-worker.ts";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import { validateDevlove } from "../../../src/wire/devlove-validate.ts";
import { judgeManifest } from "../../../src/wire/manifest-judgement.ts";
import type { Content } from "./dying-entry.ts";

const entry = new URL("../../../src/central/judge.ts", import.meta.url);
const never = new AbortController().signal;
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0)) await one[Symbol.asyncDispose]();
});

function judge(options: { readonly stop?: AbortSignal } = {}): Judge {
  const one = new Judge({ entry, log: silentLog(), stop: never, ...options });
  stack.push(one);
  return one;
}

function dying(options: { readonly deadlineMs?: number; readonly heapMiB?: number } = {}) {
  const worker = new JudgeWorker({
    entry: new URL("./dying-entry.ts", import.meta.url),
    what: "the devlove file",
    heapMiB: 64,
    deadlineMs: 60_000,
    idleMs: 60_000,
    waitingMax: 2,
    log: silentLog(),
    stop: never,
    ...options,
  });
  stack.push(worker);
  const context = { mainDomain: null, subDomains: [] };
  let asked = 0;
  /** One content a try. */
  const ask = async (...contents: readonly Content[]) => {
    let tries = 0;
    return worker.judge<"devlove">(async () => {
      asked++;
      const content = contents[tries++] ?? contents.at(-1) ?? "";
      return { op: "devlove", schema: "devlove/1", content, context };
    });
  };
  return { worker, ask, asked: () => asked };
}

const bytesOf = (files: number): Uint8Array =>
  new TextEncoder().encode(
    canonicalJson({
      devlove: { schema: "devlove/1", sha256: "0".repeat(64) },
      files: Array.from({ length: files }, (_, no) => ({
        path: `p${no}`,
        sha256: no.toString(16).padStart(64, "0"),
        size: no,
        mime: "text/html",
      })),
    }),
  );

test("a thread says what the judgement says", async () => {
  const one = judge();
  for (const files of [0, 1, 5_000])
    expect(await one.manifest(async () => bytesOf(files))).toEqual(judgeManifest(bytesOf(files)));
  const sha256 = "7".padStart(64, "0") as Parameters<Judge["path"]>[1];
  expect(await one.path(async () => bytesOf(9), sha256, 7)).toBe("p7");
  const context = { mainDomain: "a.example", subDomains: [] };
  for (const content of ['{"domains":{}}', JSON.stringify({ domains: { "b.example": {} } }), "x"]) {
    const long = content.padEnd(100_000);
    const question = { schema: "devlove/1", context };
    const said = validateDevlove("devlove/1", long, context);
    expect(await one.devlove({ ...question, content: long })).toEqual(said);
    expect(await one.devlove({ ...question, content })).toEqual(
      validateDevlove("devlove/1", content, context),
    );
  }
});

test("a document does not wait for a manifest", async () => {
  const one = judge();
  const ended: string[] = [];
  const manifest = one.manifest(async () => bytesOf(100_000)).then(() => ended.push("manifest"));
  const content = '{"domains":{}}'.padEnd(100_000);
  const context = { mainDomain: null, subDomains: [] };
  await one.devlove({ schema: "devlove/1", content, context });
  ended.push("document");
  await manifest;
  expect(ended).toEqual(["document", "manifest"]);
});

test.each<Content>(["dies", "exits", "fills the heap"])(
  "a document that its thread dies of (%s) is tried once more, refused, and holds up nobody behind it",
  async (content) => {
    const { ask, asked } = dying();
    const refused = ask(content);
    const behind = ask("");
    expect(await refused).toMatchObject({ kind: "unjudged", isLasting: true });
    expect(await behind).toMatchObject({ kind: "judged" });
    expect(asked()).toBe(3);
    // It was another's fault.
    expect(await ask(content, "")).toMatchObject({ kind: "judged" });
  },
);

test("a document that never ends is refused at its deadline, and not tried again", async () => {
  const { ask, asked } = dying({ deadlineMs: 1_000 });
  const reason = "judging the devlove file took longer than 1 s";
  expect(await ask("never ends")).toEqual({ kind: "unjudged", reason, isLasting: true });
  expect(asked()).toBe(1);
  expect(await ask("")).toMatchObject({ kind: "judged" });
});

test("what waits has a bound", async () => {
  const { ask, worker } = dying();
  const all = (["never ends", "", "", ""] as const).map(async (content) => ask(content));
  expect(await all[3]).toEqual({
    kind: "unjudged",
    reason: "too much is waiting to be judged",
    isLasting: false,
  });
  await worker[Symbol.asyncDispose]();
  for (const one of all.slice(0, 3))
    expect(await one).toMatchObject({ reason: "central is stopping", isLasting: false });
});

test("a stop ends what is judged at once; whoever asked may ask again", async () => {
  const stop = new AbortController();
  const one = judge({ stop: stop.signal });
  const bytes = bytesOf(100_000);
  const asked = one.manifest(async () => {
    setImmediate(() => stop.abort());
    return bytes;
  });
  await expect(asked).rejects.toMatchObject({ code: "JUDGING_BUSY", retryable: true });
  await expect(one.manifest(async () => bytesOf(5_000))).rejects.toMatchObject({
    code: "JUDGING_BUSY",
  });
});

test("bytes that cannot be read are whoever asked's fault", async () => {
  const read = async (): Promise<Uint8Array> => {
    throw new Error("gone");
  };
  await expect(judge().manifest(read)).rejects.toThrow("gone");
});
