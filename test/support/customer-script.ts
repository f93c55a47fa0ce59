// What a customer does with an edge, step by step through public interfaces only: each POST with a key of its own, so that a step may be
// repeated after anything was killed. Each step asserts what must hold when it is done.

import { expect } from "vitest";
import { browser, type Api, type Edge } from "./edge.ts";
import { until } from "./until.ts";

export const domain = "www.example.com";
/** Kills, and backoffs of up to a minute behind them, may come in between. */
const provedWithinMs = 180_000;

type Step = { readonly name: string; readonly run: () => Promise<void> };
type Row = Readonly<Record<string, unknown>>;

export class CustomerScript {
  readonly #edge: Edge;
  readonly originUrl: string;
  /** Keys are fixed per script, those of repeatable changes per round: a repeated step is the same request. */
  readonly #key: (step: string) => string;
  round = 0;
  /** Changes of the bad set that were asked for, each under a key of its own. */
  readonly setChanges = new Set<string>();
  siteId = 0;
  /** While programs are being killed: how many kills there were. Undefined in peace. */
  killsByNow: () => number | undefined = () => undefined;
  /** Requests that visitors got an answer to, by path, as the incoming logs must show them. */
  readonly visits: string[] = [];

  constructor(edge: Edge, originUrl: string, seed: string) {
    this.#edge = edge;
    this.originUrl = originUrl;
    this.#key = (step) => `${seed}-${step}`;
  }

  /** Before an agent can start: customer and deployment site. */
  async enrol(): Promise<void> {
    const { api } = this.#edge;
    const trial = await api.post(
      "/trial/",
      { username: `user-${this.#key("u")}`, email: "user@example.com" },
      this.#key("start-of-the-trial"),
    );
    expect(trial.status).toBe(201);
    api.token = String((trial.body as Row)["token"]);
    const site = await api.post("/deployment-site/", { tags: "eu, test" }, this.#key("site"));
    expect(site.status).toBe(201);
    const { id, name16, secret16 } = site.body as { id: number; name16: string; secret16: string };
    this.siteId = id;
    this.#edge.writeAgentSettings({ name16, secret16 });
  }

  /** The steps after the agent runs, in order. */
  steps(): readonly Step[] {
    return [
      { name: "domain", run: () => this.#domain() },
      { name: "activate", run: () => this.#activate() },
      { name: "hit", run: () => this.#hit() },
      { name: "clear", run: () => this.#clear() },
      { name: "block", run: () => this.#block() },
      { name: "unblock", run: () => this.#unblock() },
      { name: "logs", run: () => this.#logs() },
      { name: "status", run: () => this.#status() },
    ];
  }

  #change(what: string): string {
    const key = this.#key(`${what}-${this.round}`);
    this.setChanges.add(key);
    return key;
  }

  async #domain(): Promise<void> {
    const { status, body } = await this.#edge.api.post(
      "/domain/",
      { name: domain, deployment_site_id: this.siteId },
      this.#key("domain"),
    );
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { name: domain, deployment_sites: [{ id: this.siteId }] },
    });
  }

  async #activate(): Promise<void> {
    const { api } = this.#edge;
    const content = JSON.stringify({
      domains: { [domain]: { backend: { urls: [this.originUrl] } } },
    });
    const posted = await api.post(
      `/${domain}/devlove/first/`,
      { schema: "devlove/1", content },
      this.#key("devlove"),
    );
    expect(posted.status).toBe(201);
    const versions = (await api.get(`/active-viewset/${domain}/`)).body as readonly {
      id: number;
      name: string;
    }[];
    expect(versions.map(({ name }) => name)).toEqual(["first"]);
    const id = versions[0]?.id;
    expect((await api.put(`/active-viewset/${domain}/${id}/`, {})).status).toBe(200);
    await until(
      "the activation is proved",
      async () => {
        const { body } = await api.get(`/active-viewset/${domain}/${id}/`);
        return (body as Row)["activation"] === "applied";
      },
      provedWithinMs,
    );
  }

  /** A visitor's request that gets an answer; refused connections (the agent was killed) are tried again. */
  async #visit(
    path: string,
    headers: Readonly<Record<string, string>> = {},
  ): ReturnType<Edge["visit"]> {
    const answer = await until(
      `an answer for ${path}`,
      () =>
        this.#edge
          .visit(path, { host: domain, headers, userAgent: browser })
          .catch(() => undefined),
      provedWithinMs,
    );
    this.visits.push(path);
    return answer;
  }

  async #hit(): Promise<void> {
    await until(
      "a hit",
      async () => {
        const { status, headers } = await this.#visit("/page/one?x=1");
        expect(status).toBe(200);
        return String(headers["cache-status"]).includes("hit");
      },
      provedWithinMs,
    );
  }

  async #clear(): Promise<void> {
    const killsBefore = this.killsByNow();
    await this.#hit(); // A kill since the step before may have emptied the cache.
    const before = await this.#visit("/page/one?x=1");
    const { status, body } = await this.#edge.api.post(
      `/clear-accelerator-cache/${domain}/?wait=30`,
      { url_path_patterns: ['path:"page one"'] },
      this.#key(`clear-${this.round}`),
    );
    expect(status).toBe(200);
    const { clear_id: id } = body as { clear_id: string };
    const receipt = await until(
      "the receipt",
      async () => {
        const { body: now } = await this.#edge.api.get(`/clear-accelerator-cache/${domain}/${id}/`);
        const [deployment] = (now as { deployments: readonly Row[] }).deployments;
        return deployment?.["state"] === "applied" && deployment;
      },
      provedWithinMs,
    );
    expect(receipt).toMatchObject({ deployment_site_id: this.siteId });
    // The one entry that matches was there, unless a kill just then took it, or had the clear done a second time. While programs are killed matching may take too
    // long, too: what is cleared then is more than what matched, and is told so.
    if (killsBefore === undefined || receipt["widened"] !== true) {
      const counts = killsBefore === this.killsByNow() ? [1] : [0, 1];
      expect(counts).toContain(receipt["matched"]);
      expect(receipt["widened"]).toBe(undefined);
    }
    const after = await this.#visit("/page/one?x=1");
    expect(after.body.toString()).not.toBe(before.body.toString());
  }

  async #block(): Promise<void> {
    const { status, body } = await this.#edge.api.post(
      "/mark-as-bad-bot/203.0.113.0_24/",
      { attach_to_bot: "scraper", attach_to_domain: domain },
      this.#change("mark"),
    );
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { name: "scraper", ip_addresses: ["203.0.113.0/24"] },
    });
    await until(
      "403 for the range",
      async () =>
        (await this.#visit("/page/two", { "x-forwarded-for": "203.0.113.9" })).status === 403,
      provedWithinMs,
    );
  }

  async #unblock(): Promise<void> {
    const { status } = await this.#edge.api.post(
      "/remove-ip-from-bad-bot-list/203.0.113.0_24/",
      { remove_from_bot: "scraper", remove_from_domain: domain },
      this.#change("remove"),
    );
    expect(status).toBe(200);
    await until(
      "200 for the range",
      async () =>
        (await this.#visit("/page/two", { "x-forwarded-for": "203.0.113.9" })).status === 200,
      provedWithinMs,
    );
  }

  async #logs(): Promise<void> {
    await until(
      "a record of a visit",
      async () => {
        const { status, body } = await this.#edge.api.get(
          `/incominglogs/?domain=${domain}&deployment_id=${this.siteId}`,
        );
        expect(status).toBe(200);
        return logsOf(body).some(({ uri_path: path }) => path === "/page/two");
      },
      provedWithinMs,
    );
  }

  async #status(): Promise<void> {
    await until(
      "the log agent is reporting",
      async () => {
        const { body } = await this.#edge.api.get(`/${domain}/status/`);
        return (
          (body as Record<string, readonly Row[]>)[domain]?.[0]?.["is_log_agent_reporting_data"] ===
          true
        );
      },
      provedWithinMs,
    );
  }
}

export type LogRow = {
  readonly uri_path: string;
  readonly response_status: number;
  readonly request_method: string;
  readonly authority: string;
  readonly when: number;
};

export function logsOf(body: unknown): readonly LogRow[] {
  const { logs_data: data } = body as {
    logs_data: {
      deployments: readonly {
        domains: readonly { domain_name: string; domain_logs?: readonly LogRow[] }[];
      }[];
    };
  };
  return data.deployments.flatMap(({ domains }) =>
    domains.flatMap(({ domain_logs: logs = [] }) => logs),
  );
}

/** Every record that is retained, each page by its `Link: next`. */
export async function walkLogs(api: Api, siteId: number, name: string): Promise<readonly LogRow[]> {
  const rows: LogRow[] = [];
  let path: string | undefined = `/incominglogs/?domain=${name}&deployment_id=${siteId}&limit=1000`;
  while (path !== undefined) {
    const { body, headers } = await api.get(path);
    rows.push(...logsOf(body));
    path = /<[^>]*?(\/incominglogs\/[^>]*)>;\s*rel="?next"?/.exec(headers.get("link") ?? "")?.[1];
  }
  return rows;
}
