// The site as it lies on the host: served until a viewset with views is active, never stale, and exactly what an import uploads.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 });

let edge: Edge;
let script: CustomerScript;
let views: string;
let devloveFile: string;

const devlove = (site: object): string => JSON.stringify({ domains: { [domain]: site } });

beforeAll(async () => {
  edge = await Edge.prepare();
  await edge.startCentral();
  script = new CustomerScript(edge, "http://127.0.0.1:9", "local");
  await script.enrol();
  views = join(edge.dir, "views");
  devloveFile = join(edge.dir, "devlove.json");
  mkdirSync(join(views, "sub"), { recursive: true });
  writeFileSync(join(views, "index.html"), "first");
  writeFileSync(join(views, "sub/page.html"), "page");
  writeFileSync(devloveFile, devlove({}));
  edge.changeAgentSettings({ sites: [{ domain, views_dir: views, devlove_file: devloveFile }] });
  await edge.startAgent();
  await script.steps()[0]?.run();
  await until("the site", async () => (await edge.visit("/", { host: domain })).status === 200);
});

afterAll(async () => {
  await edge[Symbol.asyncDispose]();
});

const text = async (path: string): Promise<string> =>
  (await edge.visit(path, { host: domain })).body.toString();

test("a changed file is served at once, a hundred times in a row, and a deleted one is gone", async () => {
  for (let i = 0; i < 100; i++) {
    writeFileSync(join(views, "index.html"), `content ${i}`);
    expect(await text("/")).toBe(`content ${i}`);
  }
  rmSync(join(views, "sub/page.html"));
  expect((await edge.visit("/sub/page.html", { host: domain })).status).toBe(404);
});

test("a changed devlove is served; one that is not valid leaves the last good one and says so", async () => {
  writeFileSync(devloveFile, devlove({ headers: { set: { "X-Site": "two" } } }));
  await until(
    "the header",
    async () => (await edge.visit("/", { host: domain })).headers["x-site"] === "two",
  );
  writeFileSync(devloveFile, '{"domains": {');
  await until("the warning", async () => {
    const page = await (await fetch(`http://127.0.0.1:${edge.ports.metrics}/`)).text();
    return page.includes("local_site_invalid");
  });
  expect((await edge.visit("/", { host: domain })).headers["x-site"]).toBe("two");
  writeFileSync(devloveFile, devlove({}));
  await until(
    "the corrected one",
    async () => (await edge.visit("/", { host: domain })).headers["x-site"] === undefined,
  );
});

test("an import uploads exactly this; once activated the host's own files no longer matter", async () => {
  writeFileSync(join(views, "index.html"), "imported");
  const path = `/import-viewset/${domain}/${script.siteId}/from-host/`;
  expect(await edge.api.post(path, {})).toMatchObject({ status: 200, body: { status: "ok" } });
  const done = await until("the import", async () => {
    const { body } = await edge.api.get(path);
    return (
      (body as Record<string, unknown>)["status"] === "done" && (body as Record<string, unknown>)
    );
  });
  expect(done).toMatchObject({ files: 1 });
  expect(
    (await edge.api.put(`/active-viewset/${domain}/${String(done["viewset_id"])}/`, {})).status,
  ).toBe(200);
  writeFileSync(join(views, "index.html"), "edited afterwards");
  await until("the imported version", async () => (await text("/")) === "imported");
  expect((await edge.api.post(path, {})).status).toBe(409);
});

test("a domain that the settings do not name fails the import with that reason", async () => {
  await edge.api.post("/domain/", { name: "other.example.com", deployment_site_id: script.siteId });
  const path = `/import-viewset/other.example.com/${script.siteId}/x/`;
  expect((await edge.api.post(path, {})).status).toBe(200);
  const failed = await until("the failure", async () => {
    const body = (await edge.api.get(path)).body as Record<string, unknown>;
    return body["status"] === "failed" && body;
  });
  expect(failed["error"]).toMatch(/other\.example\.com/);
  expect(failed["error"]).toMatch(/views_dir|settings/);
});
