// What an agent gets of its site's keys and certificates: in the journal, in the snapshot, and as a blob where they are many.

import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { openPrivateKey, openSymmetricKey, sealPrivateKey } from "../../../src/base/vault-seal.ts";
import { addCertificate } from "../../../src/central/store/vault/certificates.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { giveFirstKeys } from "../../../src/central/store/engine/first-keys.ts";
import { readJournal } from "../../../src/central/store/journal/journal.ts";
import { privateKeyContext, createKey } from "../../../src/central/store/vault/symmetric-keys.ts";
import type { Work } from "../../../src/central/store/engine/work.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { decodeSnapshot, type Snapshot } from "../../../src/wire/snapshot.ts";
import { certificatesMax, decodeCertificates } from "../../../src/wire/vault.ts";
import {
  name16,
  sealer,
  secret16,
  seedSite,
  startAgentSide,
  type AgentSide,
} from "../../support/agent-side.ts";
import { connectAgent, type FakeAgent } from "../../support/fake-agent.ts";

const strangeName = "ffffffffffffffff";
const strangeSecret = "ffffffffffffffffffffffffffffffff";
const firstKeyFailed = (): never => {
  throw new Error("the secret opens");
};

function digestOf(bytes: string | Uint8Array): Sha256 {
  const digest = parseSha256(createHash("sha256").update(bytes).digest("hex"));
  if (digest === undefined) throw new Error("no digest");
  return digest;
}

/** Stands for a checked one: the store does not look into them. */
const given = (no: number, chainChars = 100) => ({
  names: [`h${no}.example.com`],
  notBefore: "2020-01-01T00:00:00.000Z",
  notAfter: "2099-01-01T00:00:00.000Z",
  fingerprint: digestOf(`${no}`),
  chain: `chain ${no} `.padEnd(chainChars, "x"),
  privateKey: `private key ${no}`,
});

/** A row as the store writes it. */
function stored(siteId: number, of: ReturnType<typeof given>, key: Uint8Array) {
  const { fingerprint, privateKey, chain, names } = of;
  const context = privateKeyContext({ name16, fingerprint });
  return {
    deployment_site_id: siteId,
    names: JSON.stringify(names),
    not_before: of.notBefore,
    not_after: of.notAfter,
    fingerprint,
    chain,
    private_key_sealed: sealer.seal(privateKey, context),
    key_name: `key-${name16}-1`,
    sealed_key: sealPrivateKey(privateKey, key, { name16, fingerprint }),
    when_created: of.notBefore,
  };
}

async function started() {
  const side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const customers = new CustomerStore({
    store: side.store,
    sealer,
    now: side.clock.now,
    randomBytes,
  });
  const transact = async <T>(action: (work: Work) => Promise<T>): Promise<T> =>
    customers.transact(action);
  const add = async (no: number, chainChars?: number) =>
    transact(async (work) => addCertificate(work, { id: siteId, name16 }, given(no, chainChars)));
  return { side, siteId, transact, add, agent: await connectAgent(side.url, name16, secret16) };
}

async function snapshotOf(agent: FakeAgent): Promise<Snapshot> {
  const decoded = decodeSnapshot(await (await agent.call("/snapshot")).json());
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  return decoded.value;
}

/** The digest that the last entry names. */
async function lastBlob(side: AgentSide, siteId: number): Promise<string> {
  const { seq } = await side.agentStore.head(siteId);
  const [entry] = await readJournal(side.store, siteId, seq - 1, 1);
  const blob: unknown = Object(entry?.body)["blob"];
  if (typeof blob !== "string") throw new Error(`no blob in ${JSON.stringify(entry)}`);
  return blob;
}

test("a site that is older than keys gets its first one once; one whose secret does not open gets none", async () => {
  const { side, siteId, transact, agent } = await started();
  await using _ = side;
  expect((await snapshotOf(agent)).keys).toEqual({ keys: [] });
  const { siteId: lost } = await seedSite(side.store, strangeName, strangeSecret);
  const sealed = sealer.seal(strangeSecret, "elsewhere");
  await side.store
    .updateTable("deployment_sites")
    .set({ secret_sealed: sealed })
    .where("id", "=", lost)
    .execute();
  const failures: number[] = [];
  const give = async () => giveFirstKeys({ transact, onFailure: (id) => void failures.push(id) });
  expect(await give()).toBe(1);
  expect(await give()).toBe(0);
  expect(failures).toEqual([lost, lost]);
  const { keys, certificates: none } = await snapshotOf(agent);
  expect(none).toEqual({ certificates: [] });
  const [key, ...more] = keys.keys;
  expect([key?.name, key?.version, more]).toEqual([`key-${name16}-1`, 1, []]);
  expect(openSymmetricKey(key?.sealed ?? "", { name16, secret16 }, key?.name ?? "")).toHaveLength(
    32,
  );
  expect(await readJournal(side.store, siteId, 0, 10)).toMatchObject([
    { kind: "key.changed", body: keys },
  ]);
});

test("many sites get their first key in one go", async () => {
  const { side, transact } = await started();
  await using _ = side;
  for (let no = 0; no < 120; no += 1)
    await seedSite(side.store, no.toString(16).padStart(16, "0"), strangeSecret);
  expect(await giveFirstKeys({ transact, onFailure: firstKeyFailed })).toBe(121);
});

test("1,000 certificates travel as a blob that only their site is given, in ranges, while it is the state", async () => {
  const { side, siteId, transact, add, agent } = await started();
  await using _ = side;
  const { siteId: strangeId } = await seedSite(side.store, strangeName, strangeSecret);
  await giveFirstKeys({ transact, onFailure: firstKeyFailed });
  const [one] = await readJournal(side.store, siteId, 0, 1);
  const sealedKey = Object(one?.body)["keys"][0];
  const key = openSymmetricKey(sealedKey.sealed, { name16, secret16 }, sealedKey.name);
  await side.store
    .insertInto("certificates")
    .values(Array.from({ length: 998 }, (_, at) => stored(siteId, given(at + 1, 2_000), key)))
    .execute();
  await add(999, 2_000);
  const before = await lastBlob(side, siteId);
  await add(1_000, 2_000);
  const blob = await lastBlob(side, siteId);
  expect(blob).not.toBe(before);
  expect((await snapshotOf(agent)).certificates).toEqual({ blob, count: 1_000 });

  const whole = await agent.call(`/blobs/${blob}`);
  const text = await whole.text();
  expect([whole.status, whole.headers.get("etag"), digestOf(text)]).toEqual([
    200,
    `"${blob}"`,
    blob,
  ]);
  const decoded = decodeCertificates(JSON.parse(text));
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  const found = decoded.value.certificates.map(({ names, sealed_key: sealed, fingerprint }) => [
    names[0],
    openPrivateKey(sealed, key, { name16, fingerprint }),
  ]);
  expect(found).toEqual(
    Array.from({ length: 1_000 }, (_, at) => [`h${at + 1}.example.com`, `private key ${at + 1}`]),
  );
  const rest = await agent.call(`/blobs/${blob}`, { headers: { range: "bytes=1000000-" } });
  expect([rest.status, await rest.text()]).toEqual([206, text.slice(1_000_000)]);
  expect((await agent.call(`/blobs/${before}`)).status).toBe(404);

  const stranger = await connectAgent(side.url, strangeName, strangeSecret);
  expect((await stranger.call(`/blobs/${blob}`)).status).toBe(404);
  expect((await stranger.call(`/blobs/${blob}`, { method: "HEAD" })).status).toBe(404);
  expect(strangeId).not.toBe(siteId);

  // A new key seals them all anew.
  await transact(async (work) => createKey(work, siteId));
  expect((await agent.call(`/blobs/${blob}`)).status).toBe(404);
  const anew = await (await agent.call(`/blobs/${await lastBlob(side, siteId)}`)).text();
  expect(anew.split(`"key_name":"key-${name16}-2"`)).toHaveLength(1_001);
});

test("what is more than a site can have is refused and changes nothing", async () => {
  const { side, siteId, transact, add } = await started();
  await using _ = side;
  await giveFirstKeys({ transact, onFailure: firstKeyFailed });
  const key = randomBytes(32);
  const rows = Array.from({ length: certificatesMax - 1 }, (_, no) =>
    stored(siteId, given(10_000 + no), key),
  );
  for (let at = 0; at < rows.length; at += 500)
    await side.store
      .insertInto("certificates")
      .values(rows.slice(at, at + 500))
      .execute();
  expect(await add(1)).toEqual(expect.any(Number));
  expect(await add(2)).toBe("too-many");
  await side.store
    .updateTable("certificates")
    .set({ chain: "x".repeat(15_000) })
    .execute();
  await side.store.deleteFrom("certificates").where("names", "like", "%h110%").execute();
  expect(await add(3)).toEqual(expect.any(Number)); // Fewer, but ...
  await side.store
    .updateTable("certificates")
    .set({ chain: "x".repeat(65_536) })
    .execute();
  expect(await add(4)).toBe("too-many"); // … larger than what fits into one message of 32 MiB.
});
