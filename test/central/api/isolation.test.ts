// Two customers: whatever one has, the other can neither read, change nor tell that it exists.

import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCertificate } from "../../support/x509.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let [owner, stranger] = ["", ""];
const ids = { site: "", viewset: "", devlove: "", clear: "", customer: "", user: "" };
const vault = { key: "", name16: "", certificate: "" };
const { pem, key: privateKey } = makeCertificate({ names: ["private.example.com"] });
const upload = { certificate: pem, private_key: privateKey };
const name = "private.example.com";

beforeAll(async () => {
  api = await openApi();
  const trial = await api.call("POST", "/trial/", { body: { username: "owner" } });
  owner = member(trial.body, "token");
  ids.customer = member(trial.body, "customer_id");
  ids.user = member(trial.body, "user_id");
  stranger = await api.trial("stranger");
  const post = async (path: string, body: unknown) =>
    (await api.call("POST", path, { token: owner, body })).body;
  const site = await post("/deployment-site/", { tags: "mine" });
  ids.site = member(site, "id");
  vault.name16 = member(site, "name16");
  await post("/symenckeys/", { deployment_site_id: Number(ids.site) });
  const keys = await api.call("GET", "/symenckeys/", { token: owner });
  vault.key = member(Object(keys.body)[0], "id");
  vault.certificate = member(await post(`/upload/certificates/${vault.name16}/`, upload), "id");
  await post("/domain/", { name, deployment_site_id: Number(ids.site) });
  const content = JSON.stringify({ domains: { [name]: {} } });
  ids.devlove = member(await post(`/${name}/devlove/v1/`, { schema: "devlove/1", content }), "id");
  const versions = await api.call("GET", `/active-viewset/${name}/`, { token: owner });
  ids.viewset = member(Object(versions.body)[0], "id");
  await post("/mark-as-bad-bot/192.0.2.1/", { attach_to_bot: "Secret", attach_to_domain: name });
  await post("/bot-access-policy/", { general_policy: { unknown_bots_can_access: true } });
  await post(`/import-viewset/${name}/${ids.site}/v2/`, {});
  const clear = `/clear-accelerator-cache/${name}/`;
  ids.clear = member(await post(clear, { url_path_patterns: ["path:a"] }), "clear_id");
});
afterAll(async () => api[Symbol.asyncDispose]());

const devlove = { schema: "devlove/1", content: "{}" };
const mark = { attach_to_bot: "B", attach_to_domain: name };
const unmark = { remove_from_bot: "Secret", remove_from_domain: name };

test.each<[string, () => string, unknown?]>([
  ["GET", () => `/customer/${ids.customer}/`],
  ["PUT", () => `/customer/${ids.customer}/`, { name: "mine" }],
  ["DELETE", () => `/customer/${ids.customer}/`],
  ["GET", () => `/user-profile/${ids.user}/`],
  ["PUT", () => `/user-profile/${ids.user}/`, { first_name: "x" }],
  ["GET", () => `/deployment-site/${ids.site}/`],
  ["PUT", () => `/deployment-site/${ids.site}/`, { tags: "x" }],
  ["DELETE", () => `/deployment-site/${ids.site}/`],
  ["POST", () => `/deployment-site/${ids.site}/rotate-secret/`],
  ["POST", () => "/symenckeys/", { deployment_site_id: 1 }],
  ["GET", () => `/symenckeys/${vault.key}/`],
  ["PUT", () => `/symenckeys/${vault.key}/`, { deployment_site_id: 1 }],
  ["POST", () => `/upload/certificates/${vault.name16}/`, upload],
  ["POST", () => `/upload/certificates/${vault.name16}/`, { certificate: "x", private_key: "x" }],
  ["GET", () => `/upload/certificates/${vault.name16}/`],
  ["DELETE", () => `/upload/certificates/${vault.name16}/${vault.certificate}/`],
  ["POST", () => "/domain/", { name: "x.example.com", deployment_site_id: 1 }],
  ["GET", () => `/domain/${name}/`],
  ["PUT", () => `/domain/${name}/`, { sub_domain: { name: `a.${name}` } }],
  ["DELETE", () => `/domain/${name}/`],
  ["DELETE", () => `/domain/${name}/deployment-sites/${ids.site}/`],
  ["POST", () => `/${name}/devlove/v9/`, devlove],
  ["GET", () => `/${name}/devlove/v1/`],
  ["GET", () => `/${name}/devlove/v1/${ids.devlove}/`],
  ["PUT", () => `/${name}/devlove/v1/${ids.devlove}/`, devlove],
  ["GET", () => `/active-viewset/${name}/`],
  ["GET", () => `/active-viewset/${name}/${ids.viewset}/`],
  ["PUT", () => `/active-viewset/${name}/${ids.viewset}/`],
  ["POST", () => `/import-viewset/${name}/${ids.site}/v3/`],
  ["GET", () => `/import-viewset/${name}/${ids.site}/v2/`],
  ["POST", () => "/mark-as-bad-bot/192.0.2.9/", mark],
  ["POST", () => "/mark-as-vip-bot/192.0.2.9/", mark],
  ["POST", () => "/remove-ip-from-bad-bot-list/192.0.2.1/", unmark],
  ["POST", () => "/bot-access-policy/", { allow_access: [{ domain: name, bot: "B" }] }],
  ["POST", () => `/clear-accelerator-cache/${name}/`, { url_path_patterns: ["path:a"] }],
  ["GET", () => `/clear-accelerator-cache/${name}/${ids.clear}/`],
  ["GET", () => `/incominglogs/?domain=${name}`],
  ["GET", () => `/incominglogs/?deployment_id=${ids.site}`],
  ["GET", () => `/${name}/status/`],
])("%s %s", async (method, path, body) => {
  const before = await api.journal(Number(ids.site));
  const reply = await api.call(method, path(), {
    token: stranger,
    ...(body !== undefined && { body }),
  });
  expect(reply.status).toBe(404);
  expect(await api.journal(Number(ids.site))).toEqual(before);
  // The same words as for what nobody has.
  expect(JSON.stringify(reply.body)).not.toMatch(/customer's|owner|Secret/);
});

test("lists and checks hold nothing of the other", async () => {
  const paths = [
    "/deployment-site/",
    "/domain/",
    "/symenckeys/",
    "/list-bad-bots/",
    "/list-vip-bots/",
  ];
  for (const path of paths)
    expect((await api.call("GET", path, { token: stranger })).body).toEqual([]);
  const check = await api.call("GET", "/is-bad-bot/192.0.2.1/", { token: stranger });
  expect(check.body).toEqual({
    is_bad_bot: false,
    ip_address_or_range: "192.0.2.1",
    domains: [],
  });
  const policy = await api.call("GET", "/bot-access-policy/", { token: stranger });
  expect(policy.body).toMatchObject({ general_policy: { unknown_bots_can_access: false } });
  const conf = await api.call("GET", "/metrics-conf/by-deployment-tag/mine/", { token: stranger });
  expect(conf.body).toEqual({ metrics_config: [], customer: "stranger", omitted: [] });
});

test("both may have a domain of the same name", async () => {
  expect((await api.call("POST", "/domain/", { token: stranger, body: { name } })).status).toBe(
    201,
  );
});
