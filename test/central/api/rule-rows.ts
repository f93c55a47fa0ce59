// A row for each line of the specification's rules, states, errors, limits and words on credentials.

import { expect } from "vitest";
import { basic } from "../../support/wheels.ts";
import { stateRows } from "./rule-rows-states.ts";
import { botRows } from "./rule-rows-bots.ts";
import type { Row } from "./row-scene.ts";

const dayMs = 86_400_000;

/** Another user of the customer may not, its creator may. */
const creatorOnly = (line: string, what: string, path: string): Row => ({
  line,
  fact: `${what}: 403 for another user of the customer, 204 for the creator`,
  run: async (scene) => {
    expect((await scene.ask("DELETE", path, undefined, scene.world.mate)).status).toBe(403);
    await scene.gives(["DELETE", path], 204);
  },
});

const domains: readonly Row[] = [
  {
    line: "On create, linking by tags links the domain to all",
    fact: "all deployments that have the tags, or that one",
    run: async (scene) => {
      const made = await scene.ask("POST", "/deployment-site/", {
        tags: `${scene.slot("tag")},eu`,
      });
      const second = Number(Object(made.body).id);
      const create = async (name: string, link: object): Promise<unknown> =>
        Object((await scene.ask("POST", "/domain/", { name, ...link })).body).deployment_sites;
      const byTag = { link_to_deployment_sites_with_tags: scene.slot("tag") };
      expect(await create("a.example.org", byTag)).toEqual([{ id: scene.siteId }, { id: second }]);
      const byBoth = { link_to_deployment_sites_with_tags: `${scene.slot("tag")},eu` };
      expect(await create("b.example.org", byBoth)).toEqual([{ id: second }]);
      const byId = { deployment_site_id: second };
      expect(await create("c.example.org", byId)).toEqual([{ id: second }]);
    },
  },
  ...["When both `link_to_deployment_sites_with_tags`", "Domain create request carries both"].map(
    (line): Row => ({
      line,
      fact: "400",
      run: async (scene) => {
        const link_to_deployment_sites_with_tags = scene.slot("tag");
        for (const id of ["deployment_site_id", "deployment_id"])
          await scene.gives(
            [
              "POST",
              "/domain/",
              { name: "b.example.org", link_to_deployment_sites_with_tags, [id]: scene.siteId },
            ],
            400,
            { title: "Bad Request" },
          );
      },
    }),
  ),
  {
    line: "The rule text names the id field `deployment_site_id`",
    fact: "both names are accepted",
    run: async (scene) => {
      for (const [id, name] of [
        ["deployment_site_id", "a.example.org"],
        ["deployment_id", "b.example.org"],
      ] as const)
        await scene.gives(["POST", "/domain/", { name, [id]: scene.siteId }], 201, {
          deployment_sites: [{ id: scene.siteId }],
        });
    },
  },
  creatorOnly("Delete is allowed only to the creating user", "domain", "/domain/{domain}/"),
];

const clears: readonly Row[] = [
  {
    line: "Clears the cache of all deployments of the domain",
    fact: "each linked deployment is told and named",
    run: async (scene) => {
      const made = await scene.ask("POST", "/deployment-site/", { tags: "" });
      const second = Number(Object(made.body).id);
      await scene.gives(["PUT", "/domain/{domain}/", { deployment_site_id: second }], 200);
      const body = { url_path_patterns: ["path:a"] };
      const path = "/clear-accelerator-cache/{domain}/?wait=0";
      await scene.gives(["POST", path, body], 200, {
        deployments: [{ deployment_site_id: scene.siteId }, { deployment_site_id: second }],
      });
      for (const id of [scene.siteId, second])
        expect((await scene.api.journal(id)).at(-1)).toMatchObject({
          kind: "cache.clear",
          body: { patterns: ["path:a"] },
        });
    },
  },
  {
    line: "Each pattern is a full-text-search query in FTS5 syntax",
    fact: "the syntax of FTS5; what it cannot parse is a 400. Removal: test/system/clear-proof.test.ts",
    run: async (scene) => {
      const clear = async (pattern: string, status: number): Promise<void> =>
        scene.gives(
          ["POST", "/clear-accelerator-cache/{domain}/?wait=0", { url_path_patterns: [pattern] }],
          status,
        );
      for (const pattern of ["a AND b", '"a b" OR css*', "path:(a NOT b)", "NEAR(a b, 2)", "^a"])
        await clear(pattern, 200);
      for (const pattern of ["a AND", '"a', "nosuch:a"]) await clear(pattern, 400);
    },
  },
  {
    line: "Static files are indexed by filesystem path",
    fact: "path, query and mime can be named. What is indexed: test/agent/cache/clearing/clear.test.ts",
    run: async (scene) => {
      const url_path_patterns = ["path:css", "query:page", 'mime:"image jpeg"', "kind:static"];
      const path = "/clear-accelerator-cache/{domain}/?wait=0";
      await scene.gives(["POST", path, { url_path_patterns }], 200, {
        patterns: url_path_patterns,
      });
    },
  },
];

const credentials: readonly Row[] = [
  {
    line: "All operations except possibly the token operations use",
    fact: "401 without the header, or with another scheme; trial and recovery need none",
    run: async (scene) => {
      const authorization = `Bearer ${scene.world.token}`;
      for (const headers of [{}, { authorization }])
        expect((await scene.api.call("GET", "/domain/", { headers })).status).toBe(401);
      await scene.gives(["GET", "/domain/"], 200);
      const fresh = await scene.api.call("POST", "/trial/", {
        body: { username: `other-${scene.world.username}` },
      });
      expect(fresh.status).toBe(201);
    },
  },
  {
    isAlone: true,
    line: "A token is obtained by POST `/trial/`",
    fact: "the token of a trial works; recovery is asked for; its mail and link: test/central/notices.test.ts",
    run: async (scene) => {
      const fresh = await scene.api.call("POST", "/trial/", {
        body: { username: `other-${scene.world.username}` },
      });
      const { token } = Object(fresh.body);
      expect((await scene.ask("GET", "/customer/", undefined, token)).status).toBe(200);
      const body = { username: scene.world.username, email: scene.slot("email") };
      await scene.gives(["POST", "/tokens/start-recovery/", body], 200, { status: "email sent" });
      const asked = scene.api.store.selectFrom("recovery_requests").select("email");
      expect(await asked.execute()).toEqual([{ email: scene.slot("email") }]);
    },
  },
  {
    line: "The accelerator package upload uses HTTP basic credentials",
    fact: "401 with a token, or another password",
    run: async (scene) => {
      for (const headers of [
        { authorization: `Token ${scene.world.token}` },
        basic(scene.world.username, "wrong password"),
      ]) {
        const reply = await scene.api.call("POST", "/upload/accel_pack/1.0/", { headers });
        expect(reply.status).toBe(401);
        expect(reply.headers["www-authenticate"]).toMatch(/^Basic /);
      }
    },
  },
  creatorOnly(
    "Deleting a customer, deployment site or domain",
    "site",
    "/deployment-site/{deployment_site_id}/",
  ),
  creatorOnly(
    "Deleting a customer, deployment site or domain",
    "customer",
    "/customer/{customer_id}/",
  ),
  {
    isAlone: true,
    line: "Token lifetime and scopes: not shown",
    fact: "a token works a year later",
    run: async (scene) => {
      scene.api.clock = new Date(scene.api.clock.getTime() + 365 * dayMs);
      await scene.gives(["GET", "/customer/"], 200);
    },
  },
  {
    isAlone: true,
    line: "Incoming logs request denied",
    fact: "403 when the operator has withdrawn it",
    run: async (scene) => {
      await scene.api.store.updateTable("users").set({ may_read_logs: 0 }).execute();
      await scene.gives(["GET", "/incominglogs/"], 403);
    },
  },
];

const versions: readonly Row[] = [
  {
    line: "The interface version is in the path prefix",
    fact: "another prefix leads nowhere",
    run: async (scene) => {
      await scene.gives(["GET", "/presentation-api/v1/customer/"], 200);
      await scene.gives(["GET", "/presentation-api/v2/customer/"], 404);
    },
  },
  {
    line: "Accelerator package versions are identified by a version code",
    fact: "the second variant of the path is served; what is no version: packages.test.ts",
    run: async (scene) => {
      await scene.gives(["GET", "/upload/accel_pack_v2/"], 200, { versions: {} });
    },
  },
  {
    line: "Deprecation policy and other interface versions: not shown",
    fact: "the document tells its version",
    run: async (scene) => scene.gives(["GET", "/presentation-api/v0/customer/"], 404),
  },
];

export const ruleRows: readonly Row[] = [
  ...domains,
  ...botRows,
  ...stateRows,
  ...clears,
  ...credentials,
  ...versions,
];
