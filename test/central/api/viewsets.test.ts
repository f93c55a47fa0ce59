// Devlove files, viewset versions, activation and import: what is stored, what is refused, what the agents are told, what they proved.

import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { canonicalJson } from "../../../src/core/canonical-json.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { receipt } from "./receipts.ts";

let api: Api;
let token: string;
let name: string;
let siteId: number;
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`viewer${++no}`);
  name = `v${no}.example.com`;
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  siteId = Number(member(site.body, "id"));
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
});

const document = (settings: object): string => JSON.stringify({ domains: { [name]: settings } });

async function postDevlove(viewset: string, content: string) {
  const body = { schema: "devlove/1", content };
  return api.call("POST", `/${name}/devlove/${viewset}/`, { token, body });
}

async function versions(): Promise<readonly Record<string, unknown>[]> {
  const { body } = await api.call("GET", `/active-viewset/${name}/`, { token });
  return Array.isArray(body) ? body : [];
}

async function activate(viewset: string) {
  const version = (await versions()).find((one) => one["name"] === viewset);
  const path = `/active-viewset/${name}/${member(version, "id")}/`;
  return api.call("PUT", path, { token, body: version });
}

async function activations() {
  return (await api.journal(siteId)).filter(({ kind }) => kind === "viewset.activated");
}

describe("devlove", () => {
  test("validation answers 200 for both verdicts", async () => {
    const validate = async (content: string) =>
      (
        await api.call("POST", "/devlove/validate/", {
          token,
          body: { schema: "devlove/1", content },
        })
      ).body;
    expect(await validate(document({}))).toEqual({
      status: "ok",
      payload: { "devlove-valid": "True" },
    });
    expect(await validate(document({ indexx: 5 }))).toMatchObject({
      status: "error",
      payload: {
        "devlove-valid": "False",
        errors: [{ path: `/domains/${name}/indexx`, did_you_mean: "index" }],
      },
    });
    const body = { schema: "devlove/1" };
    expect((await api.call("POST", "/devlove/validate/", { token, body })).status).toBe(400);
  });

  test("a document of the full megabyte is taken, escapes and all", async () => {
    const filler = "\n".repeat(2 ** 20 - document({}).length);
    expect((await postDevlove("big", document({}) + filler)).status).toBe(201);
    expect((await postDevlove("bigger", `${document({}) + filler} `)).status).toBe(400);
  });

  test("makes a version, once per schema; what is invalid or another domain's is refused", async () => {
    const made = await postDevlove("first", document({}));
    expect(made).toMatchObject({
      status: 201,
      body: { schema: "devlove/1", content: document({}) },
    });
    const again = await postDevlove("first", document({}));
    expect(again).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining(member(made.body, "id")) },
    });
    expect(await postDevlove("second", '{"domains":{"www.other.org":{}}}')).toMatchObject({
      status: 400,
      body: { errors: [{ path: "/domains/www.other.org" }] },
    });
    const path = `/${name}/devlove/first/`;
    expect((await api.call("GET", path, { token })).body).toEqual([made.body]);
    const one = await api.call("GET", `${path}${member(made.body, "id")}/`, { token });
    expect(one.body).toEqual(made.body);
    expect((await api.call("GET", `/${name}/devlove/second/`, { token })).status).toBe(404);
  });
});

describe("activation", () => {
  test("names a manifest that is stored, tells every deployment, and obsoletes the one before", async () => {
    await postDevlove("one", document({}));
    await postDevlove("two", document({ index: ["home.html"] }));
    const first = await activate("one");
    expect(first).toMatchObject({
      status: 200,
      body: { is_active: true, activation: "pending", when_obsoleted: null },
    });
    await activate("two");
    const [one, two] = await versions();
    expect(one).toMatchObject({ is_active: false, activation: null, deployments: [] });
    expect(one?.["when_obsoleted"]).toBe(api.clock.toISOString());
    expect(two).toMatchObject({ is_active: true, when_obsoleted: null });

    const told = (await activations()).at(-1)?.body;
    expect(told).toMatchObject({ domain: name, viewset_name: "two" });
    const content = document({ index: ["home.html"] });
    expect(api.blobs.json(Object(told)["manifest"])).toEqual({
      devlove: {
        schema: "devlove/1",
        sha256: createHash("sha256").update(content).digest("hex"),
      },
      files: null,
    });
    expect(api.woken.at(-1)).toEqual([siteId]);

    expect((await activate("one")).body).toMatchObject({ when_obsoleted: null, is_active: true });
  });

  test("is applied when every deployment's agent has receipted, failed with the reason of one", async () => {
    await postDevlove("one", document({}));
    await activate("one");
    const seq = (await api.journal(siteId)).length;
    await receipt(api, { siteId, seq, phase: "applied", detail: { files: 3 } });
    expect((await versions())[0]).toMatchObject({
      activation: "applied",
      deployments: [{ deployment_site_id: siteId, state: "applied" }],
    });
    await activate("one");
    expect((await versions())[0]).toMatchObject({ activation: "pending" });
    const detail = { reason: "file index.html is missing" };
    await receipt(api, { siteId, seq: seq + 1, phase: "refused", detail });
    expect((await versions())[0]).toMatchObject({
      is_active: true,
      activation: "failed",
      deployments: [{ state: "failed", error: "file index.html is missing" }],
    });
  });

  test("takes the views of the version, which a new devlove inherits from the active one", async () => {
    await postDevlove("views", document({}));
    const files = [{ path: "index.html", sha256: "a".repeat(64), size: 5, mime: "text/html" }];
    const manifest = { devlove: { schema: "devlove/1", sha256: "b".repeat(64) }, files };
    const filesBlob = await api.blobs.put(Buffer.from(canonicalJson(manifest)));
    const [version] = await versions();
    await api.store
      .updateTable("viewsets")
      .set({ files_blob: filesBlob })
      .where("id", "=", Number(version?.["id"]))
      .execute();
    await activate("views");
    expect(api.blobs.json(Object((await activations()).at(-1)?.body)["manifest"])).toMatchObject({
      files,
    });
    await postDevlove("edited", document({ index: ["a.html"] }));
    await activate("edited");
    expect(api.blobs.json(Object((await activations()).at(-1)?.body)["manifest"])).toMatchObject({
      devlove: { sha256: expect.not.stringMatching(/^b{64}$/) },
      files,
    });
  });

  test("replacing the devlove of the active version activates the new content, of another not", async () => {
    const active = await postDevlove("active", document({}));
    const idle = await postDevlove("idle", document({}));
    await activate("active");
    const before = (await activations()).length;
    const put = async (viewset: string, id: string, content: string) =>
      api.call("PUT", `/${name}/devlove/${viewset}/${id}/`, {
        token,
        body: { id: Number(id), schema: "devlove/1", content },
      });
    const edited = document({ index: ["x.html"] });
    expect((await put("idle", member(idle.body, "id"), edited)).status).toBe(200);
    expect(await activations()).toHaveLength(before);
    expect((await put("active", member(active.body, "id"), "{}")).status).toBe(400);
    const reply = await put("active", member(active.body, "id"), edited);
    expect(reply.body).toEqual({ ...Object(active.body), content: edited });
    expect(await activations()).toHaveLength(before + 1);
    const digest = createHash("sha256").update(edited).digest("hex");
    expect(api.blobs.json(Object((await activations()).at(-1)?.body)["manifest"])).toMatchObject({
      devlove: { sha256: digest },
    });
  });

  test("a version that does not exist is not found", async () => {
    const path = `/active-viewset/${name}/4711/`;
    expect((await api.call("PUT", path, { token })).status).toBe(404);
  });
});

describe("import", () => {
  const path = (viewset: string) => `/import-viewset/${name}/${siteId}/${viewset}/`;

  test("is journaled to the one deployment; its progress and end can be read", async () => {
    const reply = await api.call("POST", path("taken"), { token, body: {} });
    expect([reply.status, reply.body]).toEqual([200, { status: "ok" }]);
    const entry = (await api.journal(siteId)).at(-1);
    expect(entry).toMatchObject({ kind: "viewset.import", body: { domain: name } });
    const importId = member(entry?.body, "import_id");
    const progress = {
      phase: "uploading",
      files_done: 1,
      files_total: 2,
      bytes_done: 10,
      bytes_total: 20,
    };
    api.progress.set(importId, progress);
    const running = await api.call("GET", path("taken"), { token });
    expect(running.body).toMatchObject({ status: "started", import_id: importId, progress });
    const ended = { when_ended: api.clock.toISOString(), files: 2, bytes: 20, viewset_id: 9 };
    await api.store
      .updateTable("imports")
      .set({ state: "done", ...ended })
      .where("id", "=", importId)
      .execute();
    const done = await api.call("GET", path("taken"), { token });
    expect(done.body).toMatchObject({ status: "done", ...ended });
    expect(done.body).not.toHaveProperty("progress");
  });

  test("a name in use is a conflict, while an import runs and after; after a failure it is free", async () => {
    await postDevlove("used", document({}));
    expect((await api.call("POST", path("used"), { token })).status).toBe(409);
    expect((await api.call("POST", path("new"), { token })).status).toBe(200);
    expect((await api.call("POST", path("new"), { token })).status).toBe(409);
    await api.store
      .updateTable("imports")
      .set({ state: "failed", error: "no views_dir" })
      .where("viewset_name", "=", "new")
      .execute();
    const failed = await api.call("GET", path("new"), { token });
    expect(failed.body).toMatchObject({ status: "failed", error: "no views_dir" });
    api.clock = new Date(api.clock.getTime() + 1_000);
    expect((await api.call("POST", path("new"), { token })).status).toBe(200);
    expect((await api.call("GET", path("new"), { token })).body).toMatchObject({
      status: "started",
    });
    expect((await api.call("GET", path("other"), { token })).status).toBe(404);
  });

  test("of a domain that the deployment does not serve is a conflict, and starts nothing", async () => {
    await api.call("POST", "/domain/", { token, body: { name: "apart.example.com" } });
    const other = `/import-viewset/apart.example.com/${siteId}/v/`;
    const reply = await api.call("POST", other, { token });
    expect(reply.status).toBe(409);
    expect(JSON.stringify(reply.body)).toContain("not linked");
    expect((await api.call("GET", other, { token })).status).toBe(404);
    expect((await api.call("POST", `/import-viewset/${name}/4711/v/`, { token })).status).toBe(404);
  });

  test("ends with its deployment", async () => {
    await api.call("POST", path("lost"), { token });
    await api.call("DELETE", `/deployment-site/${siteId}/`, { token });
    const row = await api.store
      .selectFrom("imports")
      .select(["state", "error"])
      .where("viewset_name", "=", "lost")
      .executeTakeFirst();
    expect(row).toEqual({ state: "failed", error: "the deployment site was deleted" });
  });
});
