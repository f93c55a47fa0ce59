// The list of sealed columns against a store that has something in each: nothing that is sealed is left out, and all of it comes to another key.

import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  openAllSealed,
  resealAll,
  sealedColumns,
} from "../../../src/central/store/sealed-columns.ts";
import { enqueue } from "../../../src/central/store/notices/outbox.ts";
import { siteSecrets } from "../../../src/central/store/journal/agent-tokens.ts";
import { createSealer } from "../../../src/base/seal.ts";
import { acmeAccount } from "../../../src/central/store/acme/acme-accounts.ts";
import { syncAcmeOrders } from "../../../src/central/store/acme/acme-domains.ts";
import { issuedKeyContext, sealOrderKey } from "../../../src/central/store/acme/acme-orders.ts";
import type { Work } from "../../../src/central/store/engine/work.ts";
import { parseName16, parseSha256 } from "../../../src/core/ids.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { makeCertificate } from "../../support/x509.ts";
import { member, openApi, type Api } from "../api/api-harness.ts";
import { randomBytes } from "node:crypto";

let api: Api;
let token = "";
const old = Buffer.alloc(32, 7);
const fresh = Buffer.alloc(32, 8);
/** Sealed for the way to an agent, by the secret of its site, and not by the store's key. */
const onTheWay = ["symmetric_keys.sealed", "certificates.sealed_key"];

beforeAll(async () => {
  api = await openApi();
  token = await api.trial("keeper");
});
afterAll(async () => api[Symbol.asyncDispose]());

const call = async (path: string, body: object): Promise<unknown> => {
  const reply = await api.call("POST", path, { token, body, headers: { "idempotency-key": path } });
  expect([path, reply.status]).toEqual([path, expect.toSatisfy((one: number) => one < 300)]);
  return reply.body;
};

async function fill(): Promise<{ readonly name16: string }> {
  const site = await call("/deployment-site/", { tags: "" });
  const [id, name16] = [member(site, "id"), member(site, "name16")];
  await call(`/deployment-site/${id}/rotate-secret/`, {});
  const issued = makeCertificate({ names: ["www.example.test"] });
  await call(`/upload/certificates/${name16}/`, {
    certificate: issued.pem,
    private_key: issued.key,
  });
  await call("/monitor-notification-channel/chat/", {
    monitor_uid: "a",
    chat_channel_name: "#a",
    chat_hook_url: "https://chat.example.test/hook",
  });
  await call("/notifications/email/subscribe/", {
    notification_type: "weekly_report_email",
    email: "ops@example.test",
  });
  const customers = new CustomerStore({
    store: api.store,
    sealer: createSealer(old),
    now: () => api.clock,
    randomBytes,
  });
  await customers.transact(async (work) =>
    enqueue(
      work,
      {
        customerId: 1,
        kind: "recovery",
        recipient: "ops@example.test",
        message: {
          channel: "mail",
          to: "ops@example.test",
          subject: "s",
          text: "t",
          html: "",
          unsubscribeUrl: null,
        },
        lifetimeMs: 3_600_000,
      },
      { perRecipient: 10, perCustomer: undefined },
    ),
  );
  const domain = await call("/domain/", { name: "www.example.test" });
  await customers.transact(async (work) => fillOrders(work, Number(member(domain, "id"))));
  return { name16 };
}

/** An account at a directory, and an order under way beside a certificate that is there. */
async function fillOrders(work: Work, domainId: number): Promise<void> {
  const owner = { customerId: 1, directory: "https://acme.example.test/", email: "a@example.test" };
  await acmeAccount(work, owner, () => "key");
  const manifest = parseSha256("0".repeat(64));
  if (manifest === undefined) throw new Error("a digest");
  const { customerId: _, ...account } = owner;
  await work.tx
    .insertInto("acme_domains")
    .values({
      domain_id: domainId,
      manifest_blob: manifest,
      said: JSON.stringify({ main: account, named: {} }),
    })
    .execute();
  await work.tx
    .insertInto("viewsets")
    .values({
      domain_id: domainId,
      name: "v1",
      comment: "",
      files_blob: null,
      manifest_blob: manifest,
      when_created: work.at,
      when_obsoleted: null,
    })
    .execute();
  await work.tx
    .updateTable("domains")
    .set((set) => ({
      active_viewset_id: set.selectFrom("viewsets").select("viewsets.id").limit(1),
    }))
    .where("id", "=", domainId)
    .execute();
  await syncAcmeOrders(work);
  const { id } = await work.tx.selectFrom("acme_orders").select("id").executeTakeFirstOrThrow();
  await work.tx
    .updateTable("acme_orders")
    .set({
      key_sealed: sealOrderKey(work, id, "key"),
      issued_key_sealed: work.sealer.seal("key", issuedKeyContext(id)),
    })
    .execute();
}

test("every sealed column is on the list", async () => {
  const tables = await api.store.introspection.getTables();
  const found = tables.flatMap(({ name, columns }) =>
    columns.filter((one) => one.name.includes("sealed")).map((one) => `${name}.${one.name}`),
  );
  const listed = sealedColumns.map(({ table, column }) => `${table}.${column}`);
  expect([...listed, ...onTheWay].toSorted()).toEqual(found.toSorted());
});

test("all that is sealed comes to another key, and is what it was", async () => {
  const { name16 } = await fill();
  for (const { table, column } of sealedColumns) {
    const { rows } =
      await sql`SELECT 1 FROM ${sql.table(table)} WHERE ${sql.ref(column)} <> ''`.execute(
        api.store,
      );
    expect([table, rows.length]).toEqual([table, expect.toSatisfy((n: number) => n > 0)]);
  }
  const named = parseName16(name16);
  if (named === undefined) throw new Error(name16);
  const secrets = async (sealer: ReturnType<typeof createSealer>) =>
    siteSecrets(api.store, sealer, named, api.clock);
  const before = await secrets(createSealer(old));
  const count = await openAllSealed(api.store, createSealer(old));
  await expect(openAllSealed(api.store, createSealer(fresh))).rejects.toMatchObject({
    code: "SEAL_BROKEN",
  });
  expect(await resealAll(api.store, createSealer(fresh, old))).toBe(count);
  expect(await openAllSealed(api.store, createSealer(fresh))).toBe(count);
  await expect(openAllSealed(api.store, createSealer(old))).rejects.toMatchObject({
    code: "SEAL_BROKEN",
  });
  expect(await secrets(createSealer(fresh))).toEqual(before);
});

test("more than a page of a column, and again where it was cut off", async () => {
  const rows = Array.from({ length: 1_100 }, (_, no) => ({
    scope: `s${no % 3}`,
    key: `k${no}`,
    request_digest: "",
    status: 200,
    answer_sealed: createSealer(no < 400 ? fresh : old).seal("{}", `idempotency/s${no % 3}/k${no}`),
    when_created: api.clock.toISOString(),
  }));
  for (let at = 0; at < rows.length; at += 100)
    await api.store
      .insertInto("idempotency")
      .values(rows.slice(at, at + 100))
      .execute();
  const count = await resealAll(api.store, createSealer(fresh, old));
  expect(count).toBeGreaterThan(1_100);
  expect(await openAllSealed(api.store, createSealer(fresh))).toBe(count);
});
