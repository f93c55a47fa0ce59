// Names that differ only in case: served as they lie on the host, refused by an import that was not told of them, and with `paths_differ_in_case` two files of a
// version, on the way through central and after the next start.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { domain } from "../support/customer-script.ts";
import { ImportEdge } from "../support/import-edge.ts";
import { until } from "../support/until.ts";

test("refused with the names, taken where they are meant", { timeout: 400_000 }, async () => {
  await using site = await ImportEdge.open();
  const { edge, views, devloveFile } = site;
  const pages = { "/class.Button.html": "the class", "/class.button.html": "the property" };
  mkdirSync(views, { recursive: true });
  for (const [path, text] of Object.entries(pages)) writeFileSync(join(views, path), text);
  const served = async () =>
    Promise.all(
      Object.keys(pages).map(async (path) =>
        (await edge.visit(path, { host: domain })).body.toString(),
      ),
    );
  await until("both are served", async () =>
    isDeepStrictEqual(await served(), Object.values(pages)),
  );

  expect(await site.start("unmeant")).toBe(200);
  const refused = await site.ended("unmeant");
  expect(refused).toMatchObject({
    status: "failed",
    error: expect.stringContaining(
      '"class.button.html" and "class.Button.html" differ only in case. If both are intended, set paths_differ_in_case',
    ),
  });
  expect(await site.blobsSent()).toBe(0);

  edge.changeAgentSettings({
    sites: [{ domain, views_dir: views, devlove_file: devloveFile, paths_differ_in_case: true }],
  });
  await edge.agent.kill();
  await edge.agent.restart();
  expect(await site.start("meant")).toBe(200);
  const { status, viewset_id: id } = await site.ended("meant");
  expect(status).toBe("done");
  expect(await site.differing(Number(id))).toEqual([]);
  expect((await edge.api.put(`/active-viewset/${domain}/${id}/`, {})).status).toBe(200);
  const state = async () => JSON.stringify((await edge.api.get(`/active-viewset/${domain}/`)).body);
  await until("it is activated", async () => (await state()).includes('"meant"'));
  for (const path of Object.keys(pages)) writeFileSync(join(views, path), "changed on the host");
  await until(
    "the version is served",
    async () => !(await served()).includes("changed on the host"),
  );
  await edge.agent.kill();
  await edge.agent.restart();
  expect(await served()).toEqual(Object.values(pages));
});
