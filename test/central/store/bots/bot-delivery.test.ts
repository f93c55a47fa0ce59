// From marks and lists to the journals: versions are counted exactly, entries are coalesced and lose nothing, lists of any length are one version.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import { createSealer } from "../../../../src/base/seal.ts";
import { BotImports, type BotImport } from "../../../../src/central/store/bots/bot-import.ts";
import { CustomerStore } from "../../../../src/central/store/engine/customer-store.ts";
import { openStore, type Store } from "../../../../src/central/store/engine/database.ts";
import { readJournal } from "../../../../src/central/store/journal/journal.ts";
import { journalVersions } from "../../../../src/central/store/bots/bot-versions.ts";
import { MarkJournal } from "../../../../src/central/store/bots/mark-journal.ts";
import { botSetElements } from "../../../../src/central/store/journal/site-state.ts";
import { parseRange } from "../../../../src/core/addresses/ip.ts";
import {
  changedSetDigest,
  elementKey,
  emptySetDigest,
} from "../../../../src/core/addresses/set-digest.ts";
import { decodeEntry, type JournalBody } from "../../../../src/wire/journal.ts";
import { seedSite } from "../../../support/agent-side.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { attachElements, detachElements } from "../../../../src/central/store/bots/bots.ts";

const host = "www.example.test";
const never = new AbortController().signal;

class Side implements AsyncDisposable {
  readonly store: Store & AsyncDisposable;
  readonly customers: CustomerStore;
  readonly marks: MarkJournal;
  readonly imports: BotImports;
  readonly woken: number[] = [];
  readonly siteId: number;
  readonly domainId: number;

  constructor(
    store: Store & AsyncDisposable,
    { siteId, domainId }: { siteId: number; domainId: number },
    windowMs: number,
  ) {
    this.store = store;
    this.siteId = siteId;
    this.domainId = domainId;
    const wake = (ids: readonly number[]): void => void this.woken.push(...ids);
    this.marks = new MarkJournal({
      store,
      wake,
      windowMs,
      log: silentLog(),
      transact: async (action) =>
        (await this.customers.run(async (work) => ({ keep: true, value: await action(work) })))
          .appended,
    });
    const sealer = createSealer(Buffer.alloc(32, 7));
    const now = (): Date => new Date();
    this.customers = new CustomerStore({ store, sealer, now, randomBytes, marks: this.marks });
    this.imports = new BotImports(this.customers, wake);
  }

  static async open(
    dir: string,
    windowMs = 50,
    seeded?: { siteId: number; domainId: number },
  ): Promise<Side> {
    const store = await openStore(join(dir, "central.db"), () => new Date());
    return new Side(store, seeded ?? (await seedSite(store)), windowMs);
  }

  async change(verb: "attach" | "detach", text: string, bot = "x"): Promise<void> {
    const parsed = parseRange(text);
    if (!parsed.ok) throw new Error(parsed.reason);
    const place = { domainId: this.domainId, host, set: "bad", bot } as const;
    await this.customers.transact(async (work) => {
      if (verb === "attach") await attachElements(work, place, [parsed.range], 1_000);
      else await detachElements(work, place, [parsed.range]);
    });
  }

  async list(text: string, more: Partial<BotImport> = {}) {
    const what = {
      domain: host,
      customerId: undefined,
      set: "bad",
      bot: "list",
      isReplacing: false,
    };
    async function* body() {
      for (let at = 0; at < text.length; at += 100) yield Buffer.from(text.slice(at, at + 100));
    }
    return this.imports.run({ ...what, ...more } as BotImport, body(), never);
  }

  async entries(): Promise<readonly JournalBody<"bots.changed">[]> {
    const entries = await readJournal(this.store, this.siteId, 0, 1_000_000);
    return entries.flatMap((entry) => {
      const decoded = decodeEntry(entry);
      return decoded.ok && decoded.entry.kind === "bots.changed" ? [decoded.entry.body] : [];
    });
  }

  async row() {
    return this.store.selectFrom("bot_sets").selectAll().executeTakeFirstOrThrow();
  }

  /** Follows the journal as an agent does that misses nothing; what is told by digest only is taken from the store. */
  async replayed(): Promise<{ version: number; digest: string; keys: ReadonlySet<string> }> {
    let [version, digest] = [0, emptySetDigest];
    const keys = new Set<string>();
    for (const body of await this.entries()) {
      expect(body.from_version).toBe(version);
      for (const element of body.removed) expect(keys.delete(elementKey(element))).toBe(true);
      for (const element of body.added) {
        expect(keys.has(elementKey(element))).toBe(false);
        keys.add(elementKey(element));
      }
      digest = changedSetDigest(digest, body.added, body.removed);
      expect([digest, keys.size]).toEqual([body.digest, body.count]);
      version = body.to_version;
    }
    return { version, digest, keys };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.marks[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}

test("a burst of marks is a version each and few entries, which lead to the set", async () => {
  using dir = tempDir();
  // As long as many of the changes below take, also where each takes long.
  await using side = await Side.open(dir.path, 1_000);
  for (let no = 0; no < 300; no++) {
    await side.change("attach", `10.0.${no >> 8}.${no & 255}`, `bot-${no % 3}`);
    if (no % 5 === 0) await side.change("detach", `10.0.${no >> 8}.${no & 255}`, `bot-${no % 3}`);
  }
  await until("all is told", async () => {
    const { version, journaled_version: told } = await side.row();
    return version === told;
  });
  const { version, digest, keys } = await side.replayed();
  expect(version).toBe(360);
  expect(keys.size).toBe(240);
  expect(await side.row()).toMatchObject({ version: 360, count: 240, digest, pending: 0 });
  expect((await side.entries()).length).toBeLessThan(100);
  expect(await side.store.selectFrom("bot_changes").selectAll().execute()).toEqual([]);
  expect(new Set(side.woken)).toEqual(new Set([side.siteId]));
});

test("the first mark after a rest is told in its own transaction", async () => {
  using dir = tempDir();
  await using side = await Side.open(dir.path);
  await side.change("attach", "10.0.0.1");
  expect(await side.entries()).toMatchObject([{ from_version: 0, to_version: 1, count: 1 }]);
});

test("marks that no journal told when central died are told at the next start", async () => {
  using dir = tempDir();
  let seeded;
  {
    const side = await Side.open(dir.path, 1_000_000);
    seeded = { siteId: side.siteId, domainId: side.domainId };
    for (let no = 0; no < 5; no++) await side.change("attach", `10.0.0.${no}`);
    await side.change("detach", "10.0.0.1");
    expect(await side.entries()).toHaveLength(1);
    await side.store[Symbol.asyncDispose](); // Without its journal, as after a kill.
  }
  await using side = await Side.open(dir.path, 5, seeded);
  await side.marks.open();
  await until("all is told", async () => (await side.entries()).length === 2);
  expect((await side.entries())[1]).toMatchObject({
    from_version: 1,
    to_version: 6,
    removed: [],
    count: 4,
  });
  expect((await side.replayed()).keys.size).toBe(4);
});

test("closing tells what waits", async () => {
  using dir = tempDir();
  const side = await Side.open(dir.path, 1_000_000);
  await side.change("attach", "10.0.0.1");
  await side.change("attach", "10.0.0.2");
  expect(await side.entries()).toHaveLength(1);
  await side.marks[Symbol.asyncDispose]();
  expect((await side.replayed()).version).toBe(2);
  await side.store[Symbol.asyncDispose]();
});

test("changes of as many elements as an entry holds are told by name, of one more by digest", async () => {
  for (const count of [10_000, 10_001]) {
    using dir = tempDir();
    await using side = await Side.open(dir.path, 1_000_000);
    await side.change("attach", "192.0.2.1");
    const ranges = Array.from({ length: count }, (_, no) => {
      const value = (10n << 24n) + BigInt(no);
      return { family: 4, first: value, last: value } as const;
    });
    const place = { domainId: side.domainId, host, set: "bad", bot: "many" } as const;
    await side.customers.transact(async (work) => attachElements(work, place, ranges, 100_000));
    await side.marks[Symbol.asyncDispose]();
    const isNamed = count === 10_000;
    const [, entry] = await side.entries();
    expect(entry).toMatchObject({ from_version: isNamed ? 1 : 2, to_version: 2, count: count + 1 });
    expect(entry?.added).toHaveLength(isNamed ? count : 0);
    if (isNamed) expect((await side.replayed()).keys.size).toBe(count + 1);
  }
});

test("a set that is told, or gone, gets no further entry", async () => {
  using dir = tempDir();
  await using side = await Side.open(dir.path, 0);
  await side.change("attach", "192.0.2.1");
  const { id } = await side.row();
  await side.customers.transact(async (work) => journalVersions(work, [id, id + 1]));
  expect(await side.entries()).toHaveLength(1);
});

test("each set has versions of its own", async () => {
  using dir = tempDir();
  await using side = await Side.open(dir.path);
  // Each change is told in its own transaction.
  const sealer = createSealer(Buffer.alloc(32, 7));
  const now = (): Date => new Date();
  const customers = new CustomerStore({ store: side.store, sealer, now, randomBytes });
  const mark = async (set: "bad" | "vip", text: string): Promise<void> => {
    const parsed = parseRange(text);
    if (!parsed.ok) throw new Error(parsed.reason);
    const place = { domainId: side.domainId, host, set, bot: "x" };
    await customers.transact(async (work) => attachElements(work, place, [parsed.range], 1_000));
  };
  for (const text of ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) await mark("bad", text);
  await mark("vip", "198.51.100.1");
  await mark("vip", "198.51.100.2");
  const sets = side.store
    .selectFrom("bot_sets")
    .select(["kind", "version", "journaled_version", "count"])
    .orderBy("id");
  expect(await sets.execute()).toEqual([
    { kind: "bad", version: 3, journaled_version: 3, count: 3 },
    { kind: "vip", version: 2, journaled_version: 2, count: 2 },
  ]);
  expect(await side.entries()).toHaveLength(5);
});

test("a list is one version: added to what is there, or in its place", async () => {
  using dir = tempDir();
  await using side = await Side.open(dir.path, 0);
  await side.change("attach", "192.0.2.1", "list");
  await side.change("attach", "192.0.2.9", "other");
  const list = "# ours\n192.0.2.1\n\n198.51.100.0/24 ; office\n2001:DB8::/32\n192.0.2.1/32\n";
  expect(await side.list(list)).toEqual({
    domain: host,
    set: "bad",
    bot: "list",
    lines: 6,
    version: 3,
    set_count: 4,
    bot_count: 3,
    added: 2,
    removed: 0,
  });
  expect(await side.list(list)).toMatchObject({ version: 3, added: 0, removed: 0 });
  expect(await side.list("203.0.113.7", { isReplacing: true })).toMatchObject({
    version: 4,
    set_count: 2,
    added: 1,
    removed: 3,
  });
  expect(await side.list("203.0.113.7", { isReplacing: true })).toMatchObject({ version: 4 });
  const { id, digest, count } = await side.row();
  const elements = await botSetElements(side.store, id);
  expect(elements).toEqual([
    { bot: "list", range: "203.0.113.7" },
    { bot: "other", range: "192.0.2.9" },
  ]);
  expect([count, digest]).toEqual([2, changedSetDigest(emptySetDigest, elements, [])]);
  await until("all is told", async () => (await side.row()).journaled_version === 4);
  expect((await side.replayed()).digest).toBe(digest);
  expect((await side.entries()).at(-1)).toMatchObject({ shrink_meant: true });

  const rows = async (): Promise<number> =>
    (await side.store.selectFrom("bot_elements").selectAll().execute()).length;
  expect(await rows()).toBeGreaterThan(2);
  await side.imports.sweep(never);
  expect(await rows()).toBe(2);
  expect(await side.store.selectFrom("dead_bots").selectAll().execute()).toEqual([]);
});

test("a long list is told by its digest", async () => {
  using dir = tempDir();
  await using side = await Side.open(dir.path, 0);
  const list = Array.from({ length: 12_000 }, (_, i) => `10.${i % 7}.${i >> 8}.${i & 255}`);
  expect(await side.list(list.join("\n"))).toMatchObject({ version: 1, added: 12_000 });
  expect(await side.entries()).toMatchObject([
    { from_version: 1, to_version: 1, added: [], removed: [], count: 12_000 },
  ]);
  const more = list.map((text) => text.replace("10.", "11."));
  expect(await side.list(more.join("\n"))).toMatchObject({ version: 2, added: 12_000 });
  const { id, digest, count } = await side.row();
  const elements = await botSetElements(side.store, id);
  expect([count, digest]).toEqual([24_000, changedSetDigest(emptySetDigest, elements, [])]);
});

test("a list with a fault changes nothing and says where it is", async () => {
  using dir = tempDir();
  await using side = await Side.open(dir.path, 0);
  await side.change("attach", "192.0.2.1", "list");
  await expect(side.list("192.0.2.2\nnonsense\n192.0.2.1/24\n")).rejects.toMatchObject({
    code: "LIST_INVALID",
    message: expect.stringMatching(/^line 2: "nonsense".*\nline 3: .*192\.0\.2\.0\/24$/) as unknown,
  });
  await expect(side.list("# nothing\n", { isReplacing: true })).rejects.toMatchObject({
    code: "LIST_INVALID",
  });
  await expect(side.list("192.0.2.2", { domain: "none.example.test" })).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  expect(await side.row()).toMatchObject({ version: 1, count: 1 });
  await side.imports.sweep(never);
  expect(await side.store.selectFrom("bot_elements").selectAll().execute()).toHaveLength(1);
});

test("a domain of several customers is named with its customer", async () => {
  using dir = tempDir();
  await using side = await Side.open(dir.path, 0);
  const { customerId } = await seedSite(side.store, "ffffffffffffffff");
  await expect(side.list("192.0.2.2")).rejects.toMatchObject({ code: "USAGE" });
  expect(await side.list("192.0.2.2", { customerId })).toMatchObject({ version: 1 });
});
