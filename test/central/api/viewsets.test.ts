// Devlove files, viewset versions, activation and import: what is stored, what is refused, what the agents are told, what they proved.

import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import { activationsShown } from "../../../src/wire/customer/viewset.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { receipt, seen } from "./receipts.ts";
import { ViewsetCustomer } from "./viewset-customer.ts";

let api: Api;
let customer: ViewsetCustomer;
let token: string;
let name: string;
let siteId: number;
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  customer = await ViewsetCustomer.enrol(api, ++no);
  ({ token, name, siteId } = customer);
});

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
    expect(await validate(customer.document({}))).toEqual({
      status: "ok",
      payload: { "devlove-valid": "True" },
    });
    expect(await validate(customer.document({ indexx: 5 }))).toMatchObject({
      status: "error",
      payload: {
        "devlove-valid": "False",
        errors: [{ path: `/domains/${name}/indexx`, did_you_mean: "index" }],
      },
    });
    const shared = { ttl_s: 60, cookies: { ignore: ["ab_*", "*"] } };
    expect(await validate(customer.document({ cache: { default: shared } }))).toEqual({
      status: "ok",
      payload: {
        "devlove-valid": "True",
        warnings: [
          {
            path: `/domains/${name}/cache/default/cookies/ignore/1`,
            message:
              "all cookies are ignored: visitors who are logged in get the page of those who are not",
          },
        ],
      },
    });
    const drupal = { cache: { rules: [{ path: "/**" }], presets: [{ name: "drupal" }] } };
    expect(await validate(customer.document(drupal))).toMatchObject({
      payload: {
        presets: [
          {
            path: `/domains/${name}/cache/presets/0`,
            rules: expect.arrayContaining([{ path: "/user/**", bypass: true }]),
          },
        ],
        warnings: [
          {
            path: `/domains/${name}/cache/presets/0`,
            message: "no request reaches this preset: rule 0 comes before it and takes every path",
          },
        ],
      },
    });
    const body = { schema: "devlove/1" };
    expect((await api.call("POST", "/devlove/validate/", { token, body })).status).toBe(400);
  });

  test("a document of the full megabyte is taken, escapes and all", async () => {
    const filler = "\n".repeat(2 ** 20 - customer.document({}).length);
    expect((await customer.postDevlove("big", customer.document({}) + filler)).status).toBe(201);
    expect(
      (await customer.postDevlove("bigger", `${customer.document({}) + filler} `)).status,
    ).toBe(400);
  });

  test("makes a version, once per schema; what is invalid or another domain's is refused", async () => {
    const made = await customer.postDevlove("first", customer.document({}));
    expect(made).toMatchObject({
      status: 201,
      body: { schema: "devlove/1", content: customer.document({}) },
    });
    const again = await customer.postDevlove("first", customer.document({}));
    expect(again).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining(member(made.body, "id")) },
    });
    expect(await customer.postDevlove("second", '{"domains":{"www.other.org":{}}}')).toMatchObject({
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
    await customer.postDevlove("one", customer.document({}));
    await customer.postDevlove("two", customer.document({ index: ["home.html"] }));
    const first = await customer.activate("one");
    expect(first).toMatchObject({
      status: 200,
      body: { is_active: true, activation: "absent", when_obsoleted: null },
    });
    await customer.activate("two");
    const [one, two] = await customer.versions();
    expect(one).toMatchObject({ is_active: false, activation: null, deployments: [] });
    expect(one?.["when_obsoleted"]).toBe(api.clock.toISOString());
    expect(two).toMatchObject({ is_active: true, when_obsoleted: null });

    const told = (await activations()).at(-1)?.body;
    expect(told).toMatchObject({ domain: name, viewset_name: "two" });
    const content = customer.document({ index: ["home.html"] });
    expect(api.blobs.json(Object(told)["manifest"])).toEqual({
      devlove: {
        schema: "devlove/1",
        sha256: createHash("sha256").update(content).digest("hex"),
      },
      files: null,
    });
    expect(api.woken.at(-1)).toEqual([siteId]);

    expect((await customer.activate("one")).body).toMatchObject({
      when_obsoleted: null,
      is_active: true,
    });
  });

  test("is kept with the time of each, also when a version is active again", async () => {
    await customer.postDevlove("one", customer.document({}));
    await customer.postDevlove("two", customer.document({ index: ["home.html"] }));
    const times: string[] = [];
    for (const version of ["one", "two", "one"]) {
      times.push(api.clock.toISOString());
      await customer.activate(version);
      api.clock = new Date(api.clock.getTime() + 60_000);
    }
    const [one, two] = await customer.versions();
    expect([one?.["activations"], two?.["activations"]]).toEqual([
      [times[0], times[2]],
      [times[1]],
    ]);
    for (let left = activationsShown; left > 0; left--) await customer.activate("two");
    expect((await customer.versions())[1]?.["activations"]).toHaveLength(activationsShown);
  });

  test("is applied when every deployment's agent has receipted, failed with the reason of one", async () => {
    await customer.postDevlove("one", customer.document({}));
    await customer.activate("one");
    const seq = (await api.journal(siteId)).length;
    await receipt(api, { siteId, seq, phase: "applied", detail: { files: 3 } });
    expect((await customer.versions())[0]).toMatchObject({
      activation: "applied",
      deployments: [{ deployment_site_id: siteId, state: "applied" }],
    });
    await customer.activate("one");
    expect((await customer.versions())[0]).toMatchObject({ activation: "pending" });
    const detail = { reason: "file index.html is missing" };
    await receipt(api, { siteId, seq: seq + 1, phase: "refused", detail });
    expect((await customer.versions())[0]).toMatchObject({
      is_active: true,
      activation: "failed",
      deployments: [{ state: "failed", error: "file index.html is missing" }],
    });
  });

  test("at a deployment that no agent ever connected for is absent, and holds up nothing", async () => {
    const site = await api.call("POST", "/deployment-site/", { token, body: {} });
    const emptyId = Number(member(site.body, "id"));
    await api.call("PUT", `/domain/${name}/`, { token, body: { deployment_site_id: emptyId } });
    await customer.postDevlove("one", customer.document({}));
    await customer.activate("one");
    const state = async () => {
      const [version] = await customer.versions();
      return [version?.["activation"], Object(version)["deployments"]];
    };
    const at = (siteState: string, more = {}) => [
      { deployment_site_id: siteId, state: siteState, ...more },
      { deployment_site_id: emptyId, state: "absent" },
    ];
    expect(await state()).toEqual(["absent", at("absent")]);
    await seen(api, siteId);
    const last_seen = api.clock.toISOString();
    expect(await state()).toEqual(["pending", at("pending", { last_seen })]);
    const entries = await api.journal(siteId);
    const seq = entries.findLastIndex(({ kind }) => kind === "viewset.activated") + 1;
    await receipt(api, { siteId, seq, phase: "applied" });
    expect(await state()).toEqual(["applied", at("applied", { last_seen })]);
    await seen(api, emptyId);
    expect(await state()).toMatchObject(["pending", [{}, { state: "pending" }]]);
  });

  test("takes the views of the version, which a new devlove inherits from the active one", async () => {
    await customer.postDevlove("views", customer.document({}));
    const files = [{ path: "index.html", sha256: "a".repeat(64), size: 5, mime: "text/html" }];
    const manifest = { devlove: { schema: "devlove/1", sha256: "b".repeat(64) }, files };
    const filesBlob = await api.blobs.put(Buffer.from(canonicalJson(manifest)));
    const [version] = await customer.versions();
    await api.store
      .updateTable("viewsets")
      .set({ files_blob: filesBlob })
      .where("id", "=", Number(version?.["id"]))
      .execute();
    await customer.activate("views");
    expect(api.blobs.json(Object((await activations()).at(-1)?.body)["manifest"])).toMatchObject({
      files,
    });
    await customer.postDevlove("edited", customer.document({ index: ["a.html"] }));
    await customer.activate("edited");
    expect(api.blobs.json(Object((await activations()).at(-1)?.body)["manifest"])).toMatchObject({
      devlove: { sha256: expect.not.stringMatching(/^b{64}$/) },
      files,
    });
  });

  test("replacing the devlove of the active version activates the new content, of another not", async () => {
    const active = await customer.postDevlove("active", customer.document({}));
    const idle = await customer.postDevlove("idle", customer.document({}));
    await customer.activate("active");
    const before = (await activations()).length;
    const put = async (viewset: string, id: string, content: string) =>
      api.call("PUT", `/${name}/devlove/${viewset}/${id}/`, {
        token,
        body: { id: Number(id), schema: "devlove/1", content },
      });
    const edited = customer.document({ index: ["x.html"] });
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
    expect(running.body).not.toHaveProperty("waits_for");
    api.takesNothing = true;
    const held = await api.call("GET", path("taken"), { token });
    expect(member(held.body, "waits_for")).toContain("object storage");
    api.progress.set(importId, { ...progress, phase: "reading" });
    const reading = await api.call("GET", path("taken"), { token });
    expect(reading.body).not.toHaveProperty("waits_for");
    const ended = { when_ended: api.clock.toISOString(), files: 2, bytes: 20, viewset_id: 9 };
    await api.store
      .updateTable("imports")
      .set({ state: "done", ...ended })
      .where("id", "=", importId)
      .execute();
    const done = await api.call("GET", path("taken"), { token });
    expect(done.body).toMatchObject({ status: "done", ...ended });
    expect(done.body).not.toHaveProperty("progress");
    expect(done.body).not.toHaveProperty("waits_for");
    api.takesNothing = false;
  });

  test("a name in use is a conflict, while an import runs and after; after a failure it is free", async () => {
    await customer.postDevlove("used", customer.document({}));
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

describe("an activation beside other changes", () => {
  /** How often the version is another one when it is about to be activated. */
  async function activatedBeside(changes: number) {
    await customer.postDevlove("v1", customer.document({}));
    const [version] = await customer.versions();
    let [transactions, left] = [0, changes];
    api.gate = async () => {
      // The first says who asks; of each try one reads and the next activates.
      transactions++;
      if (transactions === 1 || transactions % 2 === 0 || left === 0) return;
      left--;
      await api.store
        .updateTable("devlove_files")
        .set({ content: customer.document({ index: [`index${left}.html`] }) })
        .where("viewset_id", "=", Number(member(version, "id")))
        .execute();
    };
    try {
      const path = `/active-viewset/${name}/${member(version, "id")}/`;
      return (await api.call("PUT", path, { token, body: Object(version) })).status;
    } finally {
      api.gate = undefined;
    }
  }

  test("is tried again with what the version is by then, twice", async () => {
    expect(await activatedBeside(2)).toBe(200);
    const told = await activations();
    expect(told).toHaveLength(1);
    const last = customer.document({ index: ["index0.html"] });
    expect(api.blobs.json(Object(told[0]?.body)["manifest"])).toMatchObject({
      devlove: { sha256: createHash("sha256").update(last).digest("hex") },
    });
    expect(await customer.versions()).toMatchObject([{ is_active: true }]);
  });

  test("is given up when it changes each time, and nothing is in force", async () => {
    expect(await activatedBeside(3)).toBe(409);
    expect(await activations()).toEqual([]);
    expect(await customer.versions()).toMatchObject([{ is_active: false }]);
  });
});
