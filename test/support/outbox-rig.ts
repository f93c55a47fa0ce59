// A real outbox in a real store, with a clock of its own; two customers have something to say.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Health } from "../../src/base/health.ts";
import { Registry } from "../../src/base/metrics.ts";
import { createSealer } from "../../src/base/seal.ts";
import { SenderTelemetry } from "../../src/central/mail/telemetry.ts";
import { CustomerStore } from "../../src/central/store/engine/customer-store.ts";
import { openTestStore } from "./any-store.ts";
import {
  enqueue,
  type Enqueued,
  type NewMessage,
  type OutboxLimits,
} from "../../src/central/store/notices/outbox.ts";
import { Outbox } from "../../src/central/store/notices/outbox-sending.ts";
import type { Outgoing } from "../../src/core/outgoing.ts";
import { tempDir } from "./temp-dir.ts";

const unlimited: OutboxLimits = { perRecipient: 1_000, perCustomer: 1_000 };

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
  const outboxAs = (owner: string): Outbox => new Outbox({ store, sealer, now, owner });
  const enqueued = async (
    recipient: string,
    message: Outgoing,
    more: Partial<NewMessage> = {},
  ): Promise<Enqueued> =>
    (
      await customers.transact(async (work) => {
        const kind = "weekly_report_email";
        const given = { customerId: 1, kind, recipient, message, lifetimeMs: 3_600_000, ...more };
        return { keep: true, value: await enqueue(work, given, limits.now) };
      })
    ).value;
  const put = async (to: string, more: Partial<NewMessage> = {}) => {
    const mail = { subject: to, text: "t", html: "h", unsubscribeUrl: null };
    return enqueued(to, { channel: "mail", to, ...mail }, more);
  };
  const post = async (recipient: string, hookUrl: string, customerId = 1) =>
    enqueued(recipient, { channel: "chat", hookUrl, text: recipient }, { customerId });
  const limits: { now: OutboxLimits } = { now: unlimited };
  const telemetry = new SenderTelemetry({ registry, health });
  const rows = async () => store.selectFrom("outbox").selectAll().orderBy("id").execute();
  const held = stack.move();
  return {
    clock,
    now,
    store,
    outboxAs,
    put,
    post,
    rows,
    health,
    registry,
    telemetry,
    limits,
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

export type OutboxRig = Awaited<ReturnType<typeof openOutbox>>;
