// A real outbox in a real store, with a clock of its own; two customers have something to say.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Health } from "../../src/base/health.ts";
import { Registry } from "../../src/base/metrics.ts";
import { createSealer } from "../../src/base/seal.ts";
import type { Outbox } from "../../src/central/mail/ports.ts";
import { SenderTelemetry } from "../../src/central/mail/telemetry.ts";
import { CustomerStore } from "../../src/central/store/customer-store.ts";
import { openTestStore } from "./any-store.ts";
import {
  endMessage,
  enqueue,
  expireMessages,
  outboxBacklog,
  postponeMessage,
  takeMessage,
} from "../../src/central/store/outbox.ts";
import { tempDir } from "./temp-dir.ts";

const unlimited = { perRecipient: 1_000, perCustomer: 1_000 };

export async function openOutbox() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const clock = { now: new Date("2031-05-06T07:00:00.000Z") };
  const now = (): Date => clock.now;
  const store = stack.use(await openTestStore(join(dir.path, "central.db"), now));
  const sealer = createSealer(Buffer.alloc(32, 7));
  const customers = new CustomerStore({ store, sealer, now, randomBytes });
  for (const name of ["one", "two"])
    await store
      .insertInto("customers")
      .values({ name, created_by_user_id: null, when_created: "2031-01-01T00:00:00.000Z" })
      .execute();
  const health = new Health(now);
  const registry = new Registry();
  const outboxAs = (owner: string): Outbox => ({
    take: async (channel, ms) => takeMessage({ store, sealer }, channel, { owner, ms }, now()),
    sent: async ({ id }) => endMessage(store, { id, owner }, { state: "sent", error: null }, now()),
    failed: async ({ id }, error) =>
      endMessage(store, { id, owner }, { state: "failed", error }, now()),
    postpone: async ({ id, recipient }, when, reason) =>
      postponeMessage(store, { id, owner, recipient }, when, reason),
    expire: async () => expireMessages(store, now()),
    backlog: async () => outboxBacklog(store),
  });
  const put = async (to: string, more: { onceKey?: string; customerId?: number } = {}) =>
    (
      await customers.transact(async (work) => {
        const mail = { subject: to, text: "t", html: "h", unsubscribeUrl: null };
        const value = await enqueue(
          work,
          {
            customerId: 1,
            kind: "weekly_report_email",
            recipient: to,
            message: { channel: "mail", to, ...mail },
            lifetimeMs: 3_600_000,
            ...more,
          },
          limits.now,
        );
        return { keep: true, value };
      })
    ).value;
  const limits = { now: unlimited };
  const telemetry = new SenderTelemetry({ registry, health });
  const rows = async () => store.selectFrom("outbox").selectAll().orderBy("id").execute();
  const held = stack.move();
  return {
    clock,
    now,
    store,
    outboxAs,
    put,
    rows,
    health,
    registry,
    telemetry,
    limits,
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

export type OutboxRig = Awaited<ReturnType<typeof openOutbox>>;
