// Visitors while the real cache has no index: its directory cannot be used.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { openRig } from "../../cache/rig.ts";
import { ask, openEdge, openOrigin } from "../edge.ts";
import { Stage } from "../stage.ts";

it("whoever comes after an unsafe request does not share what was asked of the origin before it", async () => {
  using dir = tempDir();
  writeFileSync(join(dir.path, "cache"), "in the way");
  await using rig = openRig(dir.path);
  await until("the refusal is told", () => rig.health.list()[0]?.code === "cache_closed");
  let state = "old";
  const read = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const origin = await openOrigin((request, response) => {
    if (request.method === "POST") {
      state = "new";
      response.writeHead(204).end();
      return;
    }
    const body = state;
    const headers = { "Cache-Control": "max-age=60" };
    void held.promise.then(() => response.writeHead(200, headers).end(body));
    read.resolve();
  });
  const site = { backend: { urls: [origin.url], retries: 0 } };
  await using s = new Stage(await openEdge({ cache: rig.cache, site }), origin, []);
  const before = ask(s.edge, "/cart");
  await read.promise;
  expect((await ask(s.edge, "/cart", { method: "POST", body: "x" })).status).toBe(204);
  const after = ask(s.edge, "/cart");
  await s.letIn(3);
  held.resolve();
  expect([(await before).text, (await after).text]).toEqual(["old", "new"]);
});
