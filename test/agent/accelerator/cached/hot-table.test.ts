// Which ways through a site are kept for the next request: those that answered in one step, and no others.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HotTable } from "../../../../src/agent/accelerator/cached/hot-table.ts";
import { ask, openEdge, openOrigin } from "../edge.ts";
import { openStage } from "../stage.ts";

/** The paths that were kept so far. */
let kept: () => string[];

beforeEach(() => {
  const keepRoute = vi.spyOn(HotTable.prototype, "keepRoute");
  kept = () => keepRoute.mock.calls.map(([route]) => route.target.rawPath);
});
afterEach(() => vi.restoreAllMocks());

test("what the origin alone answers is not kept, however often it is asked for", async () => {
  await using s = await openStage((_q, r) => {
    r.writeHead(200, { "Cache-Control": "private, no-store" }).end("own");
  });
  for (let no = 0; no < 12; no++) expect((await ask(s.edge, `/page/${no % 4}`)).text).toBe("own");
  expect(kept()).toEqual([]);
});

test.each([[[]], [["date"]]])(
  "a response that answers is kept, with %j removed",
  async (remove) => {
    await using origin = await openOrigin((_q, r) => {
      r.writeHead(200, { "Cache-Control": "max-age=60" }).end("page");
    });
    const site = { backend: { urls: [origin.url] }, headers: { remove } };
    await using edge = await openEdge({ site });
    const asked = async (): Promise<string | undefined> =>
      (await ask(edge, "/page")).headers["cache-status"];
    expect(await asked()).toContain("; stored");
    expect(kept()).toEqual([]);
    expect(await asked()).toContain("; hit");
    const { length } = kept();
    expect(new Set(kept())).toEqual(new Set(["/page"]));
    for (let no = 0; no < 5; no++) expect(await asked()).toContain("; hit");
    // It is found again: only a head of another age is kept anew.
    expect(kept().length - length).toBeLessThanOrEqual(2);
  },
);
