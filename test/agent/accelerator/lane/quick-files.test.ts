// Files of a viewset in the lane: whoever asks again is answered in one step, with the bytes and the record that the pipeline gives.

import { expect, onTestFinished, test, vi } from "vitest";
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

test("files of a host's own directory are looked at for each request", async () => {
  using dir = tempDir();
  const kinds = watchQuick();
  await using edge = await openSite(layDirectory(dir.path));
  for (let no = 0; no < 3; no++) expect((await ask(edge, "/style.css")).status).toBe(200);
  expect(kinds()).toEqual(["pass", "pass", "pass"]);
});
