// A real store with a customer, its deployments, domains and users, agents' reports put in by hand, and what comes into the outbox read back.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Health } from "../../src/base/health.ts";
import { Registry } from "../../src/base/metrics.ts";
import { createSealer } from "../../src/base/seal.ts";
import { SenderTelemetry } from "../../src/central/mail/telemetry.ts";
import { CustomerStore } from "../../src/central/store/engine/customer-store.ts";
import { openTestStore } from "./any-store.ts";
import { saveHello, saveReport } from "../../src/central/store/journal/instances.ts";
import { Outbox } from "../../src/central/store/notices/outbox-sending.ts";
import type { Outgoing } from "../../src/core/outgoing.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import { chainStart } from "../../src/core/journal/journal-chain.ts";
import type { Hello, Report } from "../../src/wire/channel.ts";
import { settingsOf } from "./central-whole.ts";
import { reportOf } from "./fake-agent.ts";
import { silentLog } from "../../src/base/log.ts";
import { tempDir } from "./temp-dir.ts";
import { startTrial } from "../../src/central/store/people/users.ts";
import { addDomain } from "../../src/central/store/content/domains.ts";
import { createSite } from "../../src/central/store/journal/sites.ts";
import type { Work } from "../../src/central/store/engine/work.ts";

export type ReportedDomain = {
  readonly checks?: "up" | "down";
  readonly requests?: number;
  readonly errors?: number;
  /** Answers within 2 s, and all. */
  readonly buckets?: readonly [number, number];
  readonly traffic?: Report["domains"][number]["traffic"];
  readonly variants?: Report["domains"][number]["variants"];
};

export async function openNoticeRig(more = "") {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const clock = { now: new Date("2031-05-06T07:00:00.000Z") };
  const now = (): Date => clock.now;
  const store = stack.use(await openTestStore(join(dir.path, "central.db"), now));
  const sealer = createSealer(Buffer.alloc(32, 7));
  const customers = new CustomerStore({ store, sealer, now, randomBytes });
  const health = new Health(now);
  const telemetry = new SenderTelemetry({ registry: new Registry(), health });
  /** For `openNotices`, which has a telemetry of its own. */
  const ground = { sealer, health, registry: new Registry() };
  const settings = settingsOf(dir.path, more);
  const deps = { settings, telemetry, customers, store, log: silentLog(), now };
  const run = async <T>(action: (work: Work) => Promise<T>): Promise<T> =>
    customers.transact(action);

  const customer = async (username: string, email = "") => {
    const tokenDigest = `digest-${username}`;
    const made = await run(async (work) => startTrial(work, { username, email, tokenDigest }));
    if (made === undefined) throw new Error(`${username} is taken`);
    return { ...made, username, mayReadLogs: true };
  };
  type Owner = Awaited<ReturnType<typeof customer>>;
  const site = async (owner: Owner, tags: string[] = []) =>
    run(async (work) => createSite(work, owner, tags));
  const domain = async (owner: Owner, name: string, siteId: number) => {
    const id = await run(async (work) => {
      const made = await addDomain(work, owner, { name, tags: [], deploymentSiteId: siteId });
      if (made === "taken") throw new Error(`${name} is taken`);
      return made;
    });
    return id;
  };
  const hello = async (siteId: number, version = "1.0.0", server = "edge-1") => {
    const edge = {
      server_name: server,
      edge_ip_address: "",
      at_directory: "",
      datacenter_place: "",
      country_code: "",
      datacenter_provider_company: "",
      metrics_advertise: null,
    };
    const chain = parseSha256(chainStart);
    if (chain === undefined) throw new TypeError("a chain begins with a digest");
    const hello: Hello = {
      type: "hello",
      agent_version: version,
      instance_id: `instance-${siteId}`,
      boot_id: "b",
      epoch: null,
      applied_seq: 0,
      chain,
      edge,
    };
    await saveHello(store, siteId, hello, now().toISOString());
  };
  const report = async (
    siteId: number,
    domains: Readonly<Record<string, ReportedDomain>>,
    certificates?: Report["certificates"],
    instanceId = `instance-${siteId}`,
  ) => {
    const body: Report = {
      ...reportOf(instanceId, 0),
      domains: Object.entries(domains).map(([name, one]) => ({
        domain: name,
        backend: {
          requests: one.requests ?? 0,
          errors: one.errors ?? 0,
          latency_buckets:
            one.buckets === undefined ? {} : { "2": one.buckets[0], "+Inf": one.buckets[1] },
          reachable: true,
          ...(one.checks !== undefined && { checks: one.checks }),
        },
        unreviewed_bots: [],
        ...(one.traffic !== undefined && { traffic: one.traffic }),
        ...(one.variants !== undefined && { variants: one.variants }),
      })),
      ...(certificates !== undefined && { certificates }),
    };
    await store
      .transaction()
      .execute(async (tx) => saveReport(tx, siteId, body, now().toISOString()));
  };
  /** What waits in the outbox, taken out of it. */
  const messages = async (): Promise<readonly (Outgoing & { readonly kind: string })[]> => {
    const outbox = new Outbox({ store, sealer, now, owner: "rig" });
    const taken: (Outgoing & { readonly kind: string })[] = [];
    for (const channel of ["mail", "chat"] as const)
      for (;;) {
        const one = await outbox.take(channel, 1_000);
        if (one === undefined) break;
        taken.push({ ...one.message, kind: one.kind });
        await outbox.sent(one);
      }
    return taken;
  };
  const later = (ms: number): void => void (clock.now = new Date(clock.now.getTime() + ms));
  const held = stack.move();
  return {
    clock,
    store,
    deps,
    ground,
    run,
    customer,
    site,
    domain,
    hello,
    report,
    messages,
    later,
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

export type NoticeRig = Awaited<ReturnType<typeof openNoticeRig>>;
