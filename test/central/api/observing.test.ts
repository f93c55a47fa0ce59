// What is read of running deployments: request logs, scrape configuration; and what our own log says of requests.

import pino from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccelError } from "../../../src/core/faults.ts";
import { saveReport } from "../../../src/central/store/journal/instances.ts";
import type { Report } from "../../../src/wire/channel.ts";
import type { LogLine } from "../../../src/wire/customer/incoming-logs.ts";
import { reportOf } from "../../support/fake-agent.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { seen } from "./receipts.ts";

let api: Api;
let token: string;
let sites: readonly number[];
const name = "www.example.com";
const lines: string[] = [];

beforeAll(async () => {
  api = await openApi({}, pino({ level: "info" }, { write: (line: string) => lines.push(line) }));
  token = await api.trial("watcher");
  const made: number[] = [];
  for (const tags of ["eu, front", "eu"]) {
    const site = await api.call("POST", "/deployment-site/", { token, body: { tags } });
    made.push(Number(member(site.body, "id")));
  }
  sites = made;
  const body = { name, link_to_deployment_sites_with_tags: "eu" };
  await api.call("POST", "/domain/", { token, body });
});
afterAll(async () => api[Symbol.asyncDispose]());

const record = (no: number): Omit<LogLine, "deployment_id"> => ({
  connection: no,
  response_status: 200,
  request_method: "GET",
  uri_path: `/${no}`,
  backend_time: 0,
  when: 1_900_000_000 + no,
  authority: name,
});

describe("incoming logs", () => {
  test("hold the eight fields by deployment and domain", async () => {
    const [first = 0, second = 0] = sites;
    api.logs.records.set(`${first}/${name}`, [record(2), record(1)]);
    const reply = await api.call("GET", "/incominglogs/", { token });
    const shown = { ...record(2), deployment_id: first };
    expect(reply.body).toEqual({
      logs_data: {
        username: "watcher",
        deployments: [
          {
            deployment_id: first,
            deployment_desc: expect.stringMatching(/^[0-9a-f]{16} \(eu,front\)$/),
            domains: [{ domain_name: name, domain_logs: [shown, expect.anything()] }],
          },
          {
            deployment_id: second,
            deployment_desc: expect.stringMatching(/^[0-9a-f]{16} \(eu\)$/),
            domains: [{ domain_name: name, domain_logs: [] }],
          },
        ],
      },
    });
  });

  test("are walked to the end, each record once", async () => {
    const [first = 0] = sites;
    const all = Array.from({ length: 2_345 }, (_, at) => record(2_345 - at));
    api.logs.records.set(`${first}/${name}`, all);
    const walked: unknown[] = [];
    let path: string | undefined = `/incominglogs/?domain=${name}&deployment_id=${first}`;
    while (path !== undefined) {
      const page = await api.call("GET", path, { token });
      const [deployment] = Object(page.body).logs_data.deployments;
      for (const line of deployment.domains[0].domain_logs) walked.push(line.uri_path);
      path = /<([^>]+)>; rel="next"/.exec(String(page.headers["link"] ?? ""))?.[1];
    }
    expect(walked).toEqual(all.map(({ uri_path: path }) => path));
  });

  test("are bounded in time by seconds or ISO 8601", async () => {
    const query = "since=2030-01-01T00:00:00Z&until=1900000000.5&limit=7";
    await api.call("GET", `/incominglogs/?${query}`, { token });
    expect(api.logs.queries.at(-1)).toMatchObject({
      since: 1_893_456_000,
      until: 1_900_000_000.5,
      limit: 7,
    });
  });

  test.each([
    ["?limit=1001", 400],
    ["?limit=0", 400],
    ["?since=yesterday", 400],
    ["?after=5", 400],
    [`?after=x&domain=${name}&deployment_id=1`, 400],
    ["?domain=www.unknown.org", 404],
    ["?deployment_id=4711", 404],
  ])("%s: %i", async (query, status) => {
    expect((await api.call("GET", `/incominglogs/${query}`, { token })).status).toBe(status);
  });

  test("of a sub-domain stand under its main domain, and the answer says so", async () => {
    const sub_domain = { name: `img.${name}` };
    await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain } });
    const reply = await api.call("GET", `/incominglogs/?domain=${sub_domain.name}`, { token });
    expect(reply).toMatchObject({ status: 400, body: { errors: [{ path: "?domain" }] } });
    expect(JSON.stringify(reply.body)).toContain(`are listed under ${name}`);
  });

  test("that cannot be read are a 500, however many could be", async () => {
    api.logs.failure = new Error("broken");
    const reply = await api.call("GET", "/incominglogs/", { token });
    api.logs.failure = undefined;
    expect(reply.status).toBe(500);
    expect(JSON.stringify(reply.body)).not.toContain("broken");
  });

  test("that cannot be read just now are a 503 that says when", async () => {
    const [first = 0] = sites;
    for (const query of ["", `?domain=${name}&deployment_id=${first}`]) {
      api.logs.failure = new AccelError("LOGS_UNAVAILABLE", "too many wait");
      const reply = await api.call("GET", `/incominglogs/${query}`, { token });
      api.logs.failure = undefined;
      expect(reply).toMatchObject({ status: 503, headers: { "retry-after": "2" } });
    }
  });

  test("of one deployment, of one domain, of both, with a limit each", async () => {
    const [first = 0, second = 0] = sites;
    const many = (from: number) => Array.from({ length: 20 }, (_, at) => record(from - at));
    api.logs.records.set(`${first}/${name}`, many(20));
    api.logs.records.set(`${second}/${name}`, many(40));
    const read = async (query: string) => {
      const { body, headers } = await api.call("GET", `/incominglogs/?${query}`, { token });
      const { deployments } = Object(body).logs_data;
      return { deployments, link: headers["link"] };
    };
    const shape = ({ deployments }: Awaited<ReturnType<typeof read>>) =>
      deployments.map((one: { deployment_id: number; domains: { domain_logs: unknown[] }[] }) => [
        one.deployment_id,
        one.domains.map(({ domain_logs: logs }) => logs.length),
      ]);
    expect(shape(await read(`deployment_id=${second}`))).toEqual([[second, [20]]]);
    expect(shape(await read(`domain=${name}&limit=7`))).toEqual([
      [first, [7]],
      [second, [7]],
    ]);
    const both = await read(`domain=${name}&deployment_id=${first}&limit=7`);
    expect(shape(both)).toEqual([[first, [7]]]);
    expect(both.link).toContain("after=7");
    expect((await read("limit=3")).link).toBeUndefined(); // No cursor leads through several walks.
  });

  test("are denied to a user from whom the operator withdrew them", async () => {
    const denied = await api.trial("denied");
    await api.store
      .updateTable("users")
      .set({ may_read_logs: 0 })
      .where("username", "=", "denied")
      .execute();
    expect((await api.call("GET", "/incominglogs/", { token: denied })).status).toBe(403);
  });
});

test("scrape jobs: one for each deployment, two for each edge server, the rest named as omitted", async () => {
  const [first = 0, second = 0] = sites;
  const edge = {
    server_name: "edge-1",
    edge_ip_address: "192.0.2.10",
    at_directory: "/srv/one",
    datacenter_place: "Graz",
    country_code: "AT",
    datacenter_provider_company: "ACME",
    metrics_advertise: "192.0.2.10:9464",
  };
  await seen(api, first, "new", { edge });
  const conf = async (tag: string) =>
    Object((await api.call("GET", `/metrics-conf/by-deployment-tag/${tag}/`, { token })).body);
  const one = await conf("eu");
  const named = Object((await api.call("GET", `/deployment-site/${first}/`, { token })).body);
  expect(one.customer).toBe("watcher");
  expect(one.omitted).toMatchObject([{ deployment_site_id: second }]);
  expect(one.metrics_config).toEqual([
    {
      job_name: `deployment-${named.name16}`,
      metrics_path: "/metrics/deployment",
      static_configs: [
        {
          targets: ["192.0.2.10:9464"],
          labels: {
            telemetry_level: "deployment",
            customer: "watcher",
            at_directory: "/srv/one",
            at_edge__server_name: "edge-1",
            at_edge__edge_ip_address: "192.0.2.10",
            at_edge__datacenter__datacenter_place: "Graz",
            at_edge__datacenter__country_code: "AT",
            at_edge__datacenter__datacenter_provider_company: "ACME",
          },
        },
      ],
    },
    ...[
      ["edge-edge-1", "/metrics"],
      ["host-edge-1", "/metrics/node_exporter"],
    ].map(([job_name, metrics_path]) => ({
      job_name,
      metrics_path,
      static_configs: [
        {
          targets: ["192.0.2.10:9464"],
          labels: {
            server_name: "edge-1",
            telemetry_level: "edge_server",
            edge_ip_address: "192.0.2.10",
            datacenter__datacenter_place: "Graz",
            datacenter__country_code: "AT",
            datacenter__datacenter_provider_company: "ACME",
          },
        },
      ],
    })),
  ]);
  expect(one.omitted[0].reason).toBe("its agent never connected");
  const why = async (more: Partial<Report>) => {
    await saveReport(
      api.store,
      second,
      { ...reportOf("instance-two", 0), ...more },
      api.clock.toISOString(),
    );
    return (await conf("eu")).omitted[0]?.reason;
  };
  expect(await why({})).toMatch(/has stated no address yet: it has no channel/);
  expect(await why({ agent_version: "1.0.0", edge: null })).toMatch(/`edge.metrics_advertise`/);
  expect((await conf("eu")).omitted).toMatchObject([{ instance_id: "instance-two" }]);
  // As an agent without a channel tells it.
  expect(await why({ edge: { ...edge, at_directory: "/srv/two" } })).toBeUndefined();
  const both = await conf("eu");
  expect(both.metrics_config).toHaveLength(4);
  expect(both.omitted).toEqual([]);
  expect((await conf("front")).metrics_config).toHaveLength(3);
  expect(await conf("nobodys")).toMatchObject({ metrics_config: [], omitted: [] });
});

test("scrape jobs of a fleet: an element for each host of a deployment, each target of an edge server once, and nothing of a host that is gone", async () => {
  const fleet = await api.trial("fleet");
  const made: number[] = [];
  for (let no = 0; no < 2; no++) {
    const body = { tags: "fleet" };
    const site = await api.call("POST", "/deployment-site/", { token: fleet, body });
    made.push(Number(member(site.body, "id")));
  }
  const [one = 0, two = 0] = made;
  const edge = (server_name: string, at: string, more = {}) => ({
    server_name,
    edge_ip_address: at.split(":")[0],
    at_directory: `/srv/${at}`,
    datacenter_place: "",
    country_code: "",
    datacenter_provider_company: "",
    metrics_advertise: at,
    ...more,
  });
  const tell = async (siteId: number, instance: string, told: object) =>
    seen(api, siteId, instance, { edge: told });
  const conf = async () => {
    const path = "/metrics-conf/by-deployment-tag/fleet/";
    const { metrics_config: jobs, omitted } = Object(
      (await api.call("GET", path, { token: fleet })).body,
    );
    const named = Object.fromEntries(
      jobs.map((job: Record<string, unknown>) => [job["job_name"], job["static_configs"]]),
    );
    return { named, omitted };
  };
  const name16 = async (id: number) =>
    member((await api.call("GET", `/deployment-site/${id}/`, { token: fleet })).body, "name16");
  const [nameOne, nameTwo] = [await name16(one), await name16(two)];
  const targets = (configs: readonly { targets: readonly string[] }[]) =>
    configs.map((config) => config.targets);

  await tell(one, "host-a", edge("edge-a", "192.0.2.1:9464"));
  await tell(one, "host-b", edge("edge-b", "192.0.2.2:9464"));
  await tell(two, "host-a-too", edge("edge-a", "192.0.2.1:9465"));
  const all = await conf();
  expect(all.omitted).toEqual([]);
  expect(Object.keys(all.named)).toEqual([
    `deployment-${nameOne}`,
    `deployment-${nameTwo}`,
    "edge-edge-a",
    "host-edge-a",
    "edge-edge-b",
    "host-edge-b",
  ]);
  expect(all.named[`deployment-${nameOne}`]).toMatchObject([
    {
      targets: ["192.0.2.1:9464"],
      labels: { at_edge__server_name: "edge-a", at_directory: "/srv/192.0.2.1:9464" },
    },
    {
      targets: ["192.0.2.2:9464"],
      labels: { at_edge__server_name: "edge-b", at_directory: "/srv/192.0.2.2:9464" },
    },
  ]);
  expect(targets(all.named[`deployment-${nameTwo}`])).toEqual([["192.0.2.1:9465"]]);
  for (const job of ["edge-edge-a", "host-edge-a"])
    expect(targets(all.named[job])).toEqual([["192.0.2.1:9464", "192.0.2.1:9465"]]);
  expect(targets(all.named["edge-edge-b"])).toEqual([["192.0.2.2:9464"]]);

  // One host is installed anew under another name: its address is scraped once, as what it is now.
  api.clock = new Date(api.clock.getTime() + 180_001);
  await tell(one, "host-a", edge("edge-a", "192.0.2.1:9464"));
  await tell(one, "host-new", edge("edge-new", "192.0.2.2:9464"));
  await tell(one, "host-mute", edge("edge-mute", "", { metrics_advertise: null }));
  const anew = await conf();
  expect(targets(anew.named[`deployment-${nameOne}`])).toEqual([
    ["192.0.2.1:9464"],
    ["192.0.2.2:9464"],
  ]);
  expect(targets(anew.named["edge-edge-new"])).toEqual([["192.0.2.2:9464"]]);
  expect(Object.keys(anew.named)).not.toContain("edge-edge-b");
  // The other site's host is away: that is for Prometheus to tell.
  expect(targets(anew.named[`deployment-${nameTwo}`])).toEqual([["192.0.2.1:9465"]]);
  expect(anew.omitted).toMatchObject(
    [
      { instance_id: "host-b", reason: /seen since advertises its address/ },
      { instance_id: "host-mute", reason: /metrics_advertise/ },
    ].map((one) => ({ ...one, reason: expect.stringMatching(one.reason) })),
  );
});

test("a failure of ours is a 500 with an id that the log explains, and nothing else", async () => {
  const [first = 0] = sites;
  await api.store
    .updateTable("deployment_sites")
    .set({ secret_sealed: "nonsense" })
    .where("id", "=", first)
    .execute();
  const reply = await api.call("GET", `/deployment-site/${first}/`, { token });
  expect(reply.status).toBe(500);
  expect(JSON.stringify(reply.body)).not.toMatch(/seal|secret|AccelError/);
  const id = member(reply.body, "request_id");
  expect(reply.headers["x-request-id"]).toBe(id);
  expect(lines.filter((line) => line.includes(id)).join("")).toContain("does not open");
});

test("every request is one line with who, what and how long; tokens are in none", async () => {
  lines.length = 0;
  await api.call("GET", `/domain/?secret=${token}`, { token });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      method: "GET",
      path: "/presentation-api/v1/domain/",
      // What the call does not know is refused by its name; its value is told nobody.
      status: 400,
      ms: expect.any(Number),
      user_id: 1,
      request_id: expect.stringMatching(/^[0-9a-f]{16}$/),
    },
  ]);
  expect(lines.join("")).not.toContain(token);
});
