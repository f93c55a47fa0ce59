// A customer with a domain, and the service that orders for it, over a real store: the directory is in memory, and what central finds at hosts
// is the test's word.

import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { createSealer } from "../../../src/base/seal.ts";
import {
  startCertificateOrders,
  type CertificateOrdersDeps,
} from "../../../src/central/acme/certificate-orders.ts";
import { AcmeDirectories } from "../../../src/central/acme/directories.ts";
import { createAcmeMetrics } from "../../../src/central/acme/metrics.ts";
import type { Looked } from "../../../src/central/acme/self-check.ts";
import { checkCertificate } from "../../../src/central/api/certificate-check.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { deploymentsOf } from "../../../src/central/store/notices/notice-facts.ts";
import type { CertificateOrder } from "../../../src/wire/customer/certificate-order.ts";
import type { Sha256 } from "../../../src/core/ids.ts";
import { until } from "../../support/until.ts";
import { member, openApi, type Api } from "../api/api-harness.ts";
import { directoryUrl, FakeDirectory } from "./fake-directory.ts";

export const domain = "www.example.com";
export const acme = { email: "certificates@example.com", directory: directoryUrl };

export class AcmeScene implements AsyncDisposable {
  readonly api: Api;
  readonly directory: FakeDirectory;
  readonly health: Health;
  readonly customers: CustomerStore;
  /** Of the last start. */
  registry = new Registry();
  /** What central finds at a host. */
  looks: (host: string) => Looked | Promise<Looked> = () => ({ kind: "there" });
  /** The longest that an order is walked with at once. */
  walkMsMax = 60_000;
  /** Whether instances are in touch. */
  isLive = true;
  /** Called before each transaction of the service, with its number; a throw is a crash there. */
  onChange: (no: number) => void = () => undefined;
  /** Called before a devlove is read; a throw is a fault of the disk. */
  onRead: () => void = () => undefined;
  token = "";
  siteId = 0;
  #changes = 0;
  #versions = 0;
  readonly beganMs: number;

  private constructor(api: Api) {
    this.beganMs = api.clock.getTime();
    this.api = api;
    this.health = new Health(() => api.clock);
    this.directory = new FakeDirectory(() => api.clock);
    this.customers = new CustomerStore({
      store: api.store,
      sealer: createSealer(Buffer.alloc(32, 7)),
      now: () => api.clock,
      randomBytes,
    });
  }

  static async open(): Promise<AcmeScene> {
    const scene = new AcmeScene(await openApi());
    scene.token = await scene.api.trial("keeper");
    scene.siteId = Number(
      member(await scene.call("POST", "/deployment-site/", { tags: "" }), "id"),
    );
    await scene.call("POST", "/domain/", { name: domain, deployment_site_id: scene.siteId });
    return scene;
  }

  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const headers = { "idempotency-key": randomBytes(8).toString("hex") };
    const { token } = this;
    const reply = await this.api.call(method, path, {
      token,
      headers,
      ...(body !== undefined && { body }),
    });
    if (reply.status >= 300) throw new Error(JSON.stringify(reply.body));
    return reply.body;
  }

  /** Adds a sub-domain by its first label, and returns its name. */
  async addSubDomain(label: string): Promise<string> {
    const name = `${label}.${domain}`;
    await this.call("PUT", `/domain/${domain}/`, {
      sub_domain: { name, share_views_and_views_dir_with_main_domain: true },
    });
    return name;
  }

  /** Adds many sub-domains, as rows. */
  async addSubDomains(labels: readonly string[]): Promise<void> {
    const { store } = this.api;
    const { id, customer_id } = await store
      .selectFrom("domains")
      .select(["id", "customer_id"])
      .where("name", "=", domain)
      .executeTakeFirstOrThrow();
    const names = labels.map((label) => `${label}.${domain}`);
    await store
      .insertInto("sub_domains")
      .values(
        names.map((name) => ({
          domain_id: id,
          customer_id,
          name,
          share_views_and_views_dir_with_main_domain: 1,
        })),
      )
      .execute();
  }

  /** Activates a devlove of a domain. */
  async activate(domains: Readonly<Record<string, unknown>>, at = domain): Promise<void> {
    const content = JSON.stringify({ domains });
    const name = `v${++this.#versions}`;
    await this.call("POST", `/${at}/devlove/${name}/`, { schema: "devlove/1", content });
    const listed = (await this.call("GET", `/active-viewset/${at}/`)) as { id: number }[];
    await this.call("PUT", `/active-viewset/${at}/${listed.at(-1)?.id}/`, {});
  }

  /** Makes a further domain of whoever holds the token, at a site of his, which orders. */
  async addOrdering(name: string, deploymentSiteId = this.siteId): Promise<void> {
    await this.call("POST", "/domain/", { name, deployment_site_id: deploymentSiteId });
    await this.activate({ [name]: { tls: { acme } } }, name);
  }

  /** Starts the service, as a start of central does. */
  start(): AsyncDisposable {
    const { api, customers } = this;
    const now = (): Date => api.clock;
    this.registry = new Registry();
    const deps: CertificateOrdersDeps = {
      store: api.store,
      blobs: {
        read: async (sha256) => {
          this.onRead();
          return api.blobs.read(sha256);
        },
        sizeOf: async (sha256: Sha256) => api.blobs.held.get(sha256)?.byteLength,
        open: async (sha256, first, last) =>
          Readable.from([Buffer.from(api.blobs.held.get(sha256) ?? []).subarray(first, last + 1)]),
      },
      customers: {
        run: async (action) => {
          this.onChange(++this.#changes);
          return customers.run(action);
        },
      },
      directories: new AcmeDirectories(this.directory, now),
      selfCheck: { look: async ({ host }) => this.looks(host) },
      checkIssued: checkCertificate,
      walkMsMax: this.walkMsMax,
      isLive: () => this.isLive,
      wake: () => undefined,
      now,
      random: () => 0.5,
      metrics: createAcmeMetrics(this.registry),
      health: this.health,
      log: silentLog(),
      intervalMs: 2,
    };
    return startCertificateOrders(deps);
  }

  async orders(): Promise<readonly CertificateOrder[]> {
    return (await this.call("GET", "/certificate-orders/")) as CertificateOrder[];
  }

  /** Resolves with the only order when it is so. Its clock goes on, a second at each look, where `moves` says so. */
  async untilOrder(
    what: string,
    isSo: (order: CertificateOrder) => boolean,
    { moves = true } = {},
  ): Promise<CertificateOrder> {
    let last: CertificateOrder | undefined;
    await until(what, async () => {
      [last] = await this.orders();
      if (last !== undefined && isSo(last)) return true;
      if (moves) this.forward(1_000);
      return false;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${JSON.stringify(last)}`);
    });
    if (last === undefined) throw new Error("no order");
    return last;
  }

  async untilIssued(): Promise<CertificateOrder> {
    return this.untilOrder("issued", ({ state }) => state === "issued");
  }

  forward(ms: number): void {
    this.api.clock = new Date(this.api.clock.getTime() + ms);
  }

  async certificates(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const rows = await this.api.store
      .selectFrom("certificates")
      .select(["fingerprint", "deployment_site_id", "acme_order_id", "names"])
      .orderBy("id")
      .execute();
    return rows;
  }

  /** The names of each certificate of which mails tell that it expires. */
  async mailed(): Promise<readonly (readonly string[])[]> {
    const facts = await this.customers.transact(async (work) => deploymentsOf(work, 1));
    return facts.deployments.flatMap(({ certificates }) => certificates.map(({ names }) => names));
  }

  /** What the site was told of challenges, entry by entry: their tokens. */
  async told(siteId = this.siteId): Promise<readonly (readonly string[])[]> {
    const entries = await this.api.journal(siteId);
    return entries
      .filter(({ kind }) => kind === "challenges.changed")
      .map(({ body }) =>
        (body as { readonly challenges: readonly { readonly token: string }[] }).challenges.map(
          ({ token }) => token,
        ),
      );
  }

  /** An instance of the site that was seen now. */
  async addInstance(instanceId: string): Promise<void> {
    const { store, clock } = this.api;
    await store
      .insertInto("instances")
      .values({
        deployment_site_id: this.siteId,
        instance_id: instanceId,
        agent_version: "1.0.0",
        edge: null,
        applied_seq: 0,
        epoch: null,
        chain: null,
        oldest_unfinished: null,
        position_at: null,
        last_seen: clock.toISOString(),
        last_report: null,
        logs_confirmed_at: null,
      })
      .execute();
  }

  /** A receipt of the newest entry of the site, or of a position behind it. */
  async receipt(
    instanceId: string,
    phase: "applied" | "refused",
    detail: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    const { store, clock } = this.api;
    const { journal_head: seq } = await store
      .selectFrom("deployment_sites")
      .select("journal_head")
      .where("id", "=", this.siteId)
      .executeTakeFirstOrThrow();
    await store
      .insertInto("receipts")
      .values({
        deployment_site_id: this.siteId,
        instance_id: instanceId,
        seq,
        phase,
        detail: JSON.stringify(detail),
        took_ms: 1,
        when_received: clock.toISOString(),
      })
      .execute();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }
}
