// Static files in the lane: whoever asks again is answered in one step, with the bytes and the record that the pipeline gives.

import { renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClock, type WorkerClock } from "../../../../src/agent/accelerator/clock.ts";
import { QuickAnswers } from "../../../../src/agent/accelerator/lane/quick-answers.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { ask, stateOf, type Asked, type EdgeOptions } from "../edge.ts";
import { layDirectory, layManifest, openSite } from "../site-layout.ts";

/** What the quick answers said so far. */
function watchQuick(): () => readonly string[] {
  const quick = vi.spyOn(QuickAnswers.prototype, "answer");
  onTestFinished(() => quick.mockRestore());
  return () => quick.mock.results.map(({ value }) => (value as { readonly kind: string }).kind);
}

const questions: readonly (readonly [string, Asked?])[] = [
  ["/style.css"],
  ["/style.css"],
  ["/style.css?v=2"],
  ["/style.css", { method: "HEAD" }],
  ["/"],
  ["/"],
  ["/docs"],
  ["/docs/deep/a%20b.txt"],
  ["/docs/deep/a%20b.txt"],
  ["/empty.txt"],
  ["/empty.txt"],
  ["/big.txt"],
  ["/.secret"],
  ["/none"],
];

async function answers(dir: string, options: EdgeOptions) {
  await using edge = await openSite(
    layManifest(dir, ""),
    { headers: { set: { "X-Site": "1" } } },
    options,
  );
  const said: unknown[] = [];
  let etag = "";
  const note = async (path: string, asked?: Asked): Promise<void> => {
    const { status, headers, text } = await ask(edge, path, asked);
    etag = headers["etag"] ?? etag;
    const { date, ...lasting } = headers;
    said.push({ path, status, text, dated: typeof date, ...lasting });
  };
  for (const [path, asked] of questions) await note(path, asked);
  await note("/style.css");
  for (const known of [etag, `W/${etag}`, '"other"', `${etag.slice(0, -1)}-gzip"`])
    await note("/style.css", { headers: { "if-none-match": known } });
  await until("the records", () => edge.records.length === said.length);
  const untimed = { when: 0, duration: 0, connection: 0 };
  return { said, records: edge.records.map((record) => ({ ...record, ...untimed })) };
}

test("answers and records are those of the pipeline", async () => {
  using dir = tempDir();
  const kinds = watchQuick();
  const quick = await answers(dir.path, {});
  const atOnce = kinds().filter((kind) => kind === "answer").length;
  const slow = await answers(dir.path, { lane: false });
  expect(quick).toEqual(slow);
  // The first look at a file, which the index has to note, and the large file are the pipeline's.
  expect(atOnce).toBe(14);
});

test("a file that was cleared is noted anew before it is a hit again", async () => {
  using dir = tempDir();
  const kinds = watchQuick();
  await using edge = await openSite(layManifest(dir.path, ""));
  const how = async (): Promise<unknown> => (await ask(edge, "/style.css")).headers["cache-status"];
  expect([await how(), await how()]).toEqual(["accel-agent; fwd=miss", "accel-agent; hit"]);
  edge.cache.clear(({ path }) => path === "style.css");
  expect([await how(), await how()]).toEqual(["accel-agent; fwd=miss", "accel-agent; hit"]);
  expect(kinds()).toEqual(["pass", "answer", "pass", "answer"]);
});

test("another version of the site is served from the next request on", async () => {
  using dir = tempDir();
  const lying = layManifest(dir.path, "");
  await using edge = await openSite(lying);
  await ask(edge, "/style.css");
  expect((await ask(edge, "/style.css")).status).toBe(200);
  if (lying.views.kind !== "manifest") throw new Error("no manifest was laid");
  edge.publish(stateOf(2, {}, { ...lying.views, prefix: "docs/" }));
  expect((await ask(edge, "/style.css")).status).toBe(404);
  expect((await ask(edge, "/index.html")).text).toBe("docs");
});

test("a file of a host's own directory that has changed lately is read for each request", async () => {
  using dir = tempDir();
  const kinds = watchQuick();
  await using edge = await openSite(layDirectory(dir.path));
  for (let no = 0; no < 3; no++) expect((await ask(edge, "/style.css")).status).toBe(200);
  expect(kinds()).toEqual(["pass", "pass", "pass"]);
});

/** By its clock all files have rested since before they were written. */
const later: WorkerClock = { ...createClock(), wallMs: () => Date.now() + 61_000 };

test("one that rests is answered in one step, as the pipeline answers it", async () => {
  using dir = tempDir();
  const lying = layDirectory(dir.path);
  const kinds = watchQuick();
  const answersOf = async (lane: boolean): Promise<readonly unknown[]> => {
    await using edge = await openSite(lying, {}, { clock: later, lane });
    const said: unknown[] = [];
    for (let no = 0; no < 5; no++)
      for (const path of ["/style.css", "/", "/docs", "/style.css?v=2"]) {
        const { status, headers, text } = await ask(edge, path);
        const { date, ...lasting } = headers;
        said.push({ path, status, text, dated: typeof date, ...lasting });
      }
    const etag = (await ask(edge, "/style.css")).headers["etag"] ?? "";
    const fields = { headers: { "if-none-match": etag } };
    said.push((await ask(edge, "/style.css", fields)).status);
    await until("the records", () => edge.records.length === 22);
    const untimed = { when: 0, duration: 0, connection: 0 };
    return [...said, ...edge.records.map((record) => ({ ...record, ...untimed }))];
  };
  const quick = await answersOf(true);
  const atOnce = kinds().filter((kind) => kind === "answer").length;
  expect(quick).toEqual(await answersOf(false));
  // The redirect of a directory is the pipeline's, and of each file what is asked before its bytes are in memory and its name is known for that.
  expect(atOnce).toBe(13);
});

test("whatever becomes of one that was answered in one step is seen by the very next request", async () => {
  using dir = tempDir();
  const kinds = watchQuick();
  const lying = layDirectory(dir.path);
  await using edge = await openSite(
    lying,
    { index: ["start.html", "index.html"] },
    { clock: later },
  );
  const path = (name: string): string => join(lying.root, name);
  const warm = async (url: string): Promise<void> => {
    for (let no = 0; no < 4; no++) await ask(edge, url);
    expect(kinds().at(-1)).toBe("answer");
  };
  const texts: Record<string, () => void> = {
    one: () => writeFileSync(path("style.css"), "one"),
    two: () => {
      writeFileSync(path("new.css"), "two");
      renameSync(path("new.css"), path("style.css"));
    },
    docs: () => {
      rmSync(path("style.css"));
      symlinkSync("docs/index.html", path("style.css"));
    },
  };
  for (const [text, change] of Object.entries(texts)) {
    await warm("/style.css");
    change();
    expect((await ask(edge, "/style.css")).text).toBe(text);
  }
  await warm("/style.css");
  rmSync(path("style.css"));
  symlinkSync("/etc/hostname", path("style.css"));
  expect((await ask(edge, "/style.css")).status).toBe(404);
});

test("an index file of a lower rank gives way to one of a higher, and comes back", async () => {
  using dir = tempDir();
  const kinds = watchQuick();
  const lying = layDirectory(dir.path);
  const site = { index: ["start.html", "index.html"] };
  await using edge = await openSite(lying, site, { clock: later });
  const home = async (): Promise<string> => (await ask(edge, "/")).text;
  for (let no = 0; no < 4; no++) expect(await home()).toBe("<h1>home</h1>");
  // Whether the first is there takes a look at the disk.
  expect(kinds()).not.toContain("answer");
  writeFileSync(join(lying.root, "start.html"), "start");
  for (let no = 0; no < 4; no++) expect(await home()).toBe("start");
  expect(kinds().at(-1)).toBe("answer");
  rmSync(join(lying.root, "start.html"));
  for (let no = 0; no < 4; no++) expect(await home()).toBe("<h1>home</h1>");
});
