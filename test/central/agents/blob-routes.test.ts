// How many uploads there are at once, of one site and of all: each place is free again when its upload has ended, however it ended.

import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { createBlobUploadRoute } from "../../../src/central/agents/blob-routes.ts";

const sha256 = "0".repeat(64);

/** Uploads that end when the test says so. */
function held() {
  const ends: PromiseWithResolvers<"stored">[] = [];
  const route = createBlobUploadRoute({
    receive: async () => {
      const end = Promise.withResolvers<"stored">();
      ends.push(end);
      return end.promise;
    },
  } as never);
  return {
    begin: async (deploymentSiteId: number): Promise<unknown> => {
      const request = new IncomingMessage(new Socket());
      return (await route({ request, deploymentSiteId } as never, [sha256]))?.status;
    },
    /** Those that are under way, in the order in which they came. */
    under: ends,
  };
}

/** So many are taken, the next one is told to come later. */
async function fill(uploads: ReturnType<typeof held>, siteId: number, count: number) {
  const begun = Array.from({ length: count }, async () => uploads.begin(siteId));
  expect(uploads.under).toHaveLength(count);
  expect(await uploads.begin(siteId)).toBe(503);
  return begun;
}

test("sixteen of a site; when they have ended there is room for as many again", async () => {
  const uploads = held();
  for (let round = 0; round < 3; round++) {
    const begun = await fill(uploads, 1, 16);
    for (const end of uploads.under.splice(0)) end.resolve("stored");
    expect(new Set(await Promise.all(begun))).toEqual(new Set([204]));
  }
});

test("one that fails gives its place back", async () => {
  const uploads = held();
  const begun = await fill(uploads, 1, 16);
  uploads.under.shift()?.reject(new Error("the disk is full"));
  await expect(begun[0]).rejects.toThrow("the disk is full");
  const next = uploads.begin(1);
  expect(await uploads.begin(1)).toBe(503);
  for (const end of uploads.under.splice(0)) end.resolve("stored");
  expect(await next).toBe(204);
  await Promise.all(begun.slice(1));
});

test("256 of all: then a site that has none waits as well", async () => {
  const uploads = held();
  const begun: Promise<unknown>[] = [];
  for (let siteId = 1; siteId <= 16; siteId++)
    for (let no = 0; no < 16; no++) begun.push(uploads.begin(siteId));
  expect(uploads.under).toHaveLength(256);
  expect(await uploads.begin(17)).toBe(503);
  for (const end of uploads.under.splice(0)) end.resolve("stored");
  await Promise.all(begun);
  const last = uploads.begin(17);
  uploads.under[0]?.resolve("stored");
  expect(await last).toBe(204);
});
