// A row for each line of the specification's endpoint tables.

import { expect } from "vitest";
import { makeCertificate } from "../../support/x509.ts";
import { packageRows } from "./endpoint-rows-packages.ts";
import { rowsOf, type Row, type Scene, type Told } from "./row-scene.ts";

const any = (kind: StringConstructor | NumberConstructor | BooleanConstructor): unknown =>
  expect.any(kind);
const customer = (): object => ({ id: any(Number), name: any(String) });
const site = (scene: Scene, tags: string): object => ({
  id: any(Number),
  customer: { name: scene.world.username },
  name16: expect.stringMatching(/^[0-9a-f]{16}$/),
  secret16: expect.stringMatching(/^[0-9a-f]{32}$/),
  deployment_tags: tags,
});
const domainOf = (scene: Scene): object => ({
  name: scene.domain,
  sub_domains: [],
  deployment_sites: [{ id: scene.siteId }],
});
const key = (scene: Scene): object => ({
  name: expect.stringMatching(/^key-[0-9a-f]{16}-\d+$/),
  deployment_site_id: scene.siteId,
});
const devlove = (scene: Scene): object => ({
  schema: "devlove/1",
  content: JSON.stringify({ domains: { [scene.domain]: {} } }),
});
const version = (scene: Scene): object => ({
  id: Number(scene.slot("viewset_id")),
  name: scene.slot("viewset"),
  comment: any(String),
  when_created: any(String),
  when_obsoleted: null,
});
const profile = (scene: Scene): object => ({
  id: any(Number),
  username: scene.world.username,
  first_name: "",
  last_name: "",
  date_joined: "2031-05-06T07:08:09.010Z",
  email: scene.slot("email"),
});

const lines: readonly Told[] = [
  ["GET /customer/", "an array", undefined, 200, () => [customer()]],
  ["GET /customer/{customer_id}/", "the customer", undefined, 200, customer],
  ["PUT /customer/{customer_id}/", "renamed", { name: "New" }, 200, () => ({ name: "New" })],
  ["DELETE /customer/{customer_id}/", "gone, no body", undefined, 204],
  ["POST /deployment-site/", "made with its tags", { tags: "a, b" }, 201, (s) => site(s, "a,b")],
  ["GET /deployment-site/", "an array", undefined, 200, (s) => [site(s, s.slot("tag"))]],
  [
    "GET /deployment-site/{deployment_site_id}/",
    "the site",
    undefined,
    200,
    (s) => site(s, s.slot("tag")),
  ],
  [
    "PUT /deployment-site/{deployment_site_id}/",
    "new tags",
    { tags: "c" },
    200,
    (s) => site(s, "c"),
  ],
  ["DELETE /deployment-site/{deployment_site_id}/", "gone, no body", undefined, 204],
  [
    "POST /domain/",
    "linked by tags",
    (scene: Scene) => ({
      name: "new.example.com",
      link_to_deployment_sites_with_tags: scene.slot("tag"),
    }),
    201,
    (scene) => ({ name: "new.example.com", deployment_sites: [{ id: scene.siteId }] }),
  ],
  [
    "POST /domain/",
    "linked by id",
    (scene: Scene) => ({ name: "new.example.com", deployment_site_id: scene.siteId }),
    201,
    (scene) => ({ name: "new.example.com", deployment_sites: [{ id: scene.siteId }] }),
  ],
  ["GET /domain/", "an array", undefined, 200, (scene) => [domainOf(scene)]],
  ["GET /domain/{name}/", "the domain", undefined, 200, domainOf],
  [
    "PUT /domain/{name}/",
    "with the sub-domain",
    (scene: Scene) => ({
      sub_domain: {
        name: `img.${scene.domain}`,
        share_views_and_views_dir_with_main_domain: false,
      },
    }),
    200,
    (scene) => ({
      sub_domains: [
        { name: `img.${scene.domain}`, share_views_and_views_dir_with_main_domain: false },
      ],
    }),
  ],
  [
    "PUT /domain/{name}/",
    "with the deployment site",
    (scene: Scene) => ({ deployment_site_id: scene.siteId }),
    200,
    domainOf,
  ],
  ["DELETE /domain/{name}/", "gone, no body", undefined, 204],
  [
    "GET /incominglogs/",
    "logs_data",
    undefined,
    200,
    (scene) => ({
      logs_data: {
        username: scene.world.username,
        deployments: [{ domains: [{ domain_logs: [] }] }],
      },
    }),
  ],
  [
    "POST /symenckeys/",
    "a key",
    (scene: Scene) => ({ deployment_site_id: scene.siteId }),
    201,
    key,
  ],
  ["GET /symenckeys/", "an array", undefined, 200, (scene) => [key(scene)]],
  ["GET /symenckeys/{symenckey_id}/", "the key", undefined, 200, key],
  [
    "PUT /symenckeys/{symenckey_id}/",
    "bound to the site",
    (scene: Scene) => ({ deployment_site_id: scene.siteId }),
    200,
    key,
  ],
  ["POST /{domain_name}/devlove/{viewset_name}2/", "a devlove file", devlove, 201, devlove],
  ["GET /{domain_name}/devlove/{viewset_name}/", "an array", undefined, 200, (s) => [devlove(s)]],
  ["GET /{domain_name}/devlove/{viewset_name}/{devlove_id}/", "the file", undefined, 200, devlove],
  ["PUT /{domain_name}/devlove/{viewset_name}/{devlove_id}/", "written", devlove, 200, devlove],
  [
    "POST /devlove/validate/",
    "a verdict",
    devlove,
    200,
    () => ({ status: "ok", payload: { "devlove-valid": "True" } }),
  ],
  [
    "GET /{domain_name}/status/",
    "by domain, an entry for each site",
    undefined,
    200,
    (scene) => ({ [scene.domain]: [{ is_log_agent_reporting_data: false }] }),
  ],
  [
    "POST /import-viewset/{domain}/{deployment_id}/{viewset}-2/",
    "started",
    {},
    200,
    () => ({ status: "ok" }),
  ],
  ["GET /active-viewset/{domain}/", "an array", undefined, 200, (scene) => [version(scene)]],
  ["GET /active-viewset/{domain}/{viewset_id}/", "the version", undefined, 200, version],
  [
    "PUT /active-viewset/{domain}/{viewset_id}/",
    "the active one",
    {},
    200,
    (scene) => ({ ...version(scene), is_active: true }),
  ],
  [
    "POST /upload/certificates/{deployment_name}/",
    "stored",
    () => {
      const { pem, key: privateKey } = makeCertificate({ names: ["www.example.com"] });
      return { certificate: pem, private_key: privateKey };
    },
    200,
    () => ({ names: ["www.example.com"], not_after: any(String), fingerprint: any(String) }),
  ],
  ["GET /user-profile/{pk}/", "the profile", undefined, 200, profile],
  [
    "PUT /user-profile/{pk}/",
    "edited, without the password",
    (scene: Scene) => ({
      id: Number(scene.slot("pk")),
      username: scene.world.username,
      first_name: "Ada",
      last_name: "L",
      email: "a@example.com",
      password: "correct horse",
    }),
    200,
    (scene) => ({ ...profile(scene), first_name: "Ada", last_name: "L", email: "a@example.com" }),
  ],
  ["POST /trial/", "a token", { username: "new" }, 201, () => ({ token: any(String) })],
  [
    "POST /tokens/start-recovery/",
    "email sent",
    (scene: Scene) => ({ username: scene.world.username, email: scene.slot("email") }),
    200,
    () => ({ status: "email sent" }),
  ],
  [
    "GET /unreviewed-bots/",
    "an array",
    undefined,
    200,
    (scene) => [
      {
        domain_name: scene.domain,
        domain_policy: expect.stringContaining("can not access"),
        bots: [],
      },
    ],
  ],
  [
    "POST /bot-access-policy/",
    "the keys that were sent",
    { general_policy: { unknown_bots_can_access: "True" } },
    200,
    () => ({ general_policy: { unknown_bots_can_access: true } }),
  ],
  [
    "GET /bot-access-policy/",
    "the policy",
    undefined,
    200,
    () => ({ general_policy: { unknown_bots_can_access: false }, per_domain_policy: [] }),
  ],
  [
    "POST /clear-accelerator-cache/{domain}/",
    "cleared at its deployments",
    { url_path_patterns: ["path:css"] },
    200,
    (scene) => ({ deployments: [{ deployment_site_id: scene.siteId, state: "pending" }] }),
  ],
  [
    "GET /metrics-conf/by-deployment-tag/{tag}/",
    "the scrape configuration",
    undefined,
    200,
    (scene) => ({ customer: scene.world.username, metrics_config: [] }),
  ],
];

export const endpointRows: readonly Row[] = [...rowsOf(lines), ...packageRows];
