// What activating a version would change: files and devlove, against the active version or another, for whoever may know.

import { afterAll, beforeAll, expect, test } from "vitest";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import { at } from "../../support/api-contract.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";
import { ViewsetCustomer } from "./viewset-customer.ts";

let api: Api;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());

/** Gives a version views of its own, as an import does. */
async function setFiles(
  name: string,
  files: readonly (readonly [string, number])[],
): Promise<void> {
  const manifest = {
    devlove: { schema: "devlove/1", sha256: "0".repeat(64) },
    files: files.map(([path, size]) => ({
      path,
      sha256: size.toString(16).padStart(64, "0"),
      size,
      mime: "text/html",
    })),
  };
  const blob = await api.blobs.put(new TextEncoder().encode(canonicalJson(manifest)));
  await api.store
    .updateTable("viewsets")
    .set({ files_blob: blob })
    .where("name", "=", name)
    .execute();
}

class Scene {
  readonly customer: ViewsetCustomer;
  readonly ids = new Map<string, string>();

  static async of(no: number, names: readonly string[]): Promise<Scene> {
    const scene = new Scene(await ViewsetCustomer.enrol(api, no));
    for (const name of names) {
      const settings = name.endsWith("bot") ? { bots: { mode: "monitor" } } : {};
      await scene.customer.postDevlove(name, scene.customer.document(settings));
    }
    for (const one of await scene.customer.versions())
      scene.ids.set(String(one["name"]), String(one["id"]));
    return scene;
  }

  private constructor(customer: ViewsetCustomer) {
    this.customer = customer;
  }

  async changes(to: string, query = "", token = this.customer.token): Promise<Reply> {
    const id = this.ids.get(to) ?? to;
    const path = `/active-viewset/${this.customer.name}/${id}/changes/${query}`;
    return api.call("GET", path, { token });
  }

  fromQuery(name: string): string {
    return `?from=${this.ids.get(name)}`;
  }
}

test("without an active version all is new; then it is compared with the active one, or the one that is named", async () => {
  const scene = await Scene.of(1, ["one-1", "two-1", "three-1-bot"]);
  const { customer, ids } = scene;
  await setFiles("one-1", [
    ["a.html", 1],
    ["b.html", 2],
  ]);
  await setFiles("two-1", [
    ["b.html", 3],
    ["c.html", 4],
  ]);
  const first = await scene.changes("one-1");
  expect([first.status, first.body]).toEqual([
    200,
    {
      from: null,
      to: { id: Number(ids.get("one-1")), name: "one-1" },
      files: expect.objectContaining({ added: 2, same: 0, bytes_before: 0, bytes_after: 3 }),
      devlove: [{ schema: "devlove/1", before: null, after: customer.document({}) }],
    },
  ]);
  expect((await customer.activate("one-1")).status).toBe(200);
  expect((await scene.changes("two-1")).body).toEqual({
    from: { id: Number(ids.get("one-1")), name: "one-1" },
    to: { id: Number(ids.get("two-1")), name: "two-1" },
    files: {
      added: 1,
      removed: 1,
      changed: 1,
      same: 0,
      bytes_before: 3,
      bytes_after: 7,
      samples: [
        { path: "a.html", change: "removed", bytes_before: 1, bytes_after: null },
        { path: "b.html", change: "changed", bytes_before: 2, bytes_after: 3 },
        { path: "c.html", change: "added", bytes_before: null, bytes_after: 4 },
      ],
      truncated: false,
    },
    devlove: [],
  });
  const back = (await scene.changes("one-1", scene.fromQuery("two-1"))).body;
  expect(at(back, "files", "bytes_before")).toBe(7);
  const same = (await scene.changes("two-1", scene.fromQuery("two-1"))).body;
  expect(at(same, "files")).toMatchObject({ same: 2, samples: [] });
  const bots = (await scene.changes("three-1-bot")).body;
  expect(at(bots, "files")).toBeNull();
  expect(at(bots, "devlove")).toEqual([
    {
      schema: "devlove/1",
      before: customer.document({}),
      after: customer.document({ bots: { mode: "monitor" } }),
    },
  ]);
});

test("versions that are not there, of another domain or of another customer are not compared", async () => {
  const [mine, theirs] = [await Scene.of(2, ["one-2"]), await Scene.of(3, ["one-3"])];
  expect((await mine.changes("900000")).status).toBe(404);
  expect((await mine.changes("one-2", "?from=900000")).status).toBe(404);
  expect((await mine.changes("one-2", "?from=spring")).status).toBe(400);
  const foreign = await mine.changes("one-2", theirs.fromQuery("one-3"));
  const id = theirs.ids.get("one-3") ?? "";
  expect([foreign.status, JSON.stringify(foreign.body).includes("one-3")]).toEqual([404, false]);
  expect((await mine.changes(id)).status).toBe(404);
  expect((await mine.changes("one-2", "", theirs.customer.token)).status).toBe(404);
  const { token } = mine.customer;
  const second = "second-2.example.com";
  await api.call("POST", "/domain/", { token, body: { name: second } });
  const body = { name: "limited", role: "read", domains: [second] };
  const limited = member((await api.call("POST", "/tokens/", { token, body })).body, "token");
  expect((await mine.changes("one-2", "", limited)).status).toBe(404);
});

test("two hundred thousand files are compared while others are answered", async () => {
  const scene = await Scene.of(4, ["one-4", "two-4"]);
  const files = Array.from({ length: 200_000 }, (_, no) => [`p/${no}.html`, no] as const);
  await setFiles("one-4", files);
  await setFiles("two-4", files.slice(1));
  let answered = 0;
  const over = new AbortController();
  const asked = scene.changes("two-4", scene.fromQuery("one-4")).finally(() => over.abort());
  while (!over.signal.aborted) {
    await api.call("GET", "/session/", { token: scene.customer.token });
    answered++;
  }
  expect(at((await asked).body, "files")).toMatchObject({ removed: 1, same: 199_999 });
  expect(answered).toBeGreaterThan(20);
});
