// An import goes on where it was, whichever program is killed in the middle of it, and what arrives is the directory file by file. Imports beside each
// other do not disturb each other, and a directory that is written to is taken as it was at one moment.

import { mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { domain } from "../support/customer-script.ts";
import { digestsBelow, ImportEdge } from "../support/import-edge.ts";
import { until } from "../support/until.ts";

const files = 500;
let site: ImportEdge;
let round = 0;

beforeAll(async () => {
  site = await ImportEdge.open();
}, 300_000);

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** Every round has contents of its own, so that each has everything to upload. */
beforeEach(() => {
  round++;
  for (let i = 0; i < files; i++) {
    const directory = join(site.views, `d${i % 20}`);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `f${i}.html`), `<p>round ${round}, file ${i}</p>\n`.repeat(200));
  }
});

/** Files that central is known to have, in the middle of the uploads. */
async function midway(name: string): Promise<number> {
  return until(`import ${name} is uploading`, async () => {
    const { status, progress } = await site.state(name);
    if (status !== "started") throw new Error(`the import ended too early: ${status}`);
    return progress?.phase === "uploading" && progress.files_done > 50 && progress.files_done;
  });
}

function leftovers(): readonly string[] {
  return [
    ...readdirSync(join(site.edge.dir, "agent", "blobs", "incoming")),
    ...readdirSync(join(site.centralBlobsDir, "tmp")),
  ];
}

test.each([
  ["the agent", ["agent"]],
  ["central", ["central"]],
  ["both, central first,", ["central", "agent"]],
] as const)(
  "%s is killed in the middle: the rest is sent, once",
  async (_, killed) => {
    const name = `killed-${round}`;
    expect(await site.start(name)).toBe(200);
    const done = await midway(name);
    const sentBefore = await site.blobsSent();
    for (const program of killed) await site.edge[program].kill();
    for (const program of killed) await site.edge[program].restart();
    const end = await site.ended(name);
    expect(end).toMatchObject({ status: "done", files });
    expect(await site.differing(end.viewset_id ?? 0)).toEqual([]);
    // An agent that was started anew counts from 0. What was on its way when central went, is sent again.
    const sent = await site.blobsSent();
    const all = files + 2;
    if (killed.some((program) => program === "agent")) expect(sent).toBeLessThanOrEqual(all - done);
    else expect(sent - sentBefore).toBeLessThanOrEqual(all + 20);
    await until("nothing is left behind", () => leftovers().length === 0);
  },
  400_000,
);

test("two imports beside each other are both whole, and a name is taken while it is imported", async () => {
  const [one, two] = [`one-${round}`, `two-${round}`];
  expect(await site.start(one)).toBe(200);
  expect(await site.start(one)).toBe(409);
  expect(await site.start(two)).toBe(200);
  const ends = [await site.ended(one), await site.ended(two)];
  for (const end of ends) expect(end).toMatchObject({ status: "done", files });
  for (const end of ends) expect(await site.differing(end.viewset_id ?? 0)).toEqual([]);
  expect(await site.start(one)).toBe(409);
}, 400_000);

test("a deployment in the middle of the reading is taken whole or not at all", async () => {
  const name = `deployed-${round}`;
  const next = join(site.edge.dir, `next-${round}`);
  mkdirSync(next);
  for (let i = 0; i < files; i++) writeFileSync(join(next, `f${i}`), `deployed ${i}`);
  expect(await site.start(name)).toBe(200);
  await until("it is being read", async () => {
    const { status, progress } = await site.state(name);
    return progress !== undefined || status !== "started";
  });
  // As deployments do it that replace file by file.
  for (let i = 0; i < files; i++)
    renameSync(join(next, `f${i}`), join(site.views, `d${i % 20}`, `f${i}.html`));
  const end = await site.ended(name);
  expect(end.status).toBe("done");
  const { files: taken } = await site.manifest(end.viewset_id ?? 0);
  const after = await digestsBelow(site.views);
  const isNew = new Set(taken?.map(({ path, sha256 }) => after.get(path) === sha256));
  expect(taken?.length).toBe(files);
  expect(isNew.size).toBe(1);
}, 400_000);

test("what was imported last is served when it is activated", async () => {
  const name = `last-${round}`;
  await site.start(name);
  const { viewset_id: id } = await site.ended(name);
  expect((await site.edge.api.put(`/active-viewset/${domain}/${id}/`, {})).status).toBe(200);
  await until("it is served", async () => {
    const { status, body } = await site.edge.visit("/d7/f7.html", { host: domain });
    return status === 200 && body.toString().startsWith(`<p>round ${round}, file 7<`);
  });
}, 400_000);
