// What is written of a bot beside it: in force only by its last step, not where the bot was changed meanwhile, and swept when nobody comes back to it.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSealer } from "../../../../src/base/seal.ts";
import { BotImports } from "../../../../src/central/store/bots/bot-import.ts";
import { CustomerStore } from "../../../../src/central/store/engine/customer-store.ts";
import { parseRange, type IpRange } from "../../../../src/core/addresses/ip.ts";
import { openTestStore } from "../../../support/any-store.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import {
  beginRewrite,
  dropRewrite,
  putRewrite,
  stageElements,
} from "../../../../src/central/store/bots/bot-rewrite.ts";
import { attachElements } from "../../../../src/central/store/bots/bots.ts";
import { startTrial } from "../../../../src/central/store/people/users.ts";
import { addDomain } from "../../../../src/central/store/content/domains.ts";
import { listBotRecords } from "../../../../src/central/store/bots/bot-records.ts";
import type { Work } from "../../../../src/central/store/engine/work.ts";

function range(text: string): IpRange {
  const parsed = parseRange(text);
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.range;
}

async function open() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  let at = new Date("2031-05-06T07:08:09.010Z");
  const now = (): Date => at;
  const store = stack.use(await openTestStore(join(dir.path, "central.db"), now));
  const sealer = createSealer(Buffer.alloc(32, 7));
  const customers = new CustomerStore({ store, sealer, now, randomBytes });
  const run = async <T>(action: (work: Work) => Promise<T>): Promise<T> =>
    customers.transact(action);
  const owner = await run(async (work) =>
    startTrial(work, { username: "ada", email: "", tokenDigest: "x" }),
  );
  if (owner === undefined) throw new Error("no trial");
  const actor = { ...owner, username: "ada", mayReadLogs: true };
  const given = { name: "a.test", tags: [], deploymentSiteId: undefined };
  const domainId = Number(await run(async (work) => addDomain(work, actor, given)));
  const place = { domainId, host: "a.test", set: "bad", bot: "Crawler" } as const;
  const imports = new BotImports(customers, () => undefined);
  const held = stack.move();
  return {
    run,
    place,
    later: (ms: number) => (at = new Date(at.getTime() + ms)),
    sweep: async () => imports.sweep(new AbortController().signal),
    /** Whatever is kept of elements, in force or not. */
    rows: async () => (await store.selectFrom("bot_elements").select("range").execute()).length,
    listed: async () =>
      run(async (work) =>
        listBotRecords(work, { ...owner, domains: null }, "bad", { after: 0, limit: 9 }),
      ),
    /** Begun, with one element. */
    staged: async (text: string) => {
      const begun = await run(async (work) => beginRewrite(work, place));
      return run(async (work) => stageElements(work, begun, place.bot, [range(text)]));
    },
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

test("it is in force by one transaction, and the bot before is swept", async () => {
  await using rig = await open();
  await rig.run(async (work) => attachElements(work, rig.place, [range("192.0.2.1")], 9));
  const { rewrite, texts } = await rig.staged("192.0.2.2");
  expect(await rig.listed()).toMatchObject([{ ip_addresses: ["192.0.2.1"] }]);
  const change = { added: texts, removed: ["192.0.2.1"] };
  expect(await rig.run(async (work) => putRewrite(work, rig.place, rewrite, change))).toBe(true);
  expect(await rig.listed()).toMatchObject([{ name: "Crawler", ip_addresses: ["192.0.2.2"] }]);
  await rig.sweep();
  expect(await rig.rows()).toBe(1);
  expect(await rig.run(async (work) => putRewrite(work, rig.place, rewrite, change))).toBe(false);
});

test.each(["192.0.2.9", "192.0.2.2"])("not where %s came to the bot meanwhile", async (text) => {
  await using rig = await open();
  const { rewrite, texts } = await rig.staged("192.0.2.2");
  await rig.run(async (work) => attachElements(work, rig.place, [range(text)], 9));
  const change = { added: texts, removed: [] };
  expect(await rig.run(async (work) => putRewrite(work, rig.place, rewrite, change))).toBe(false);
  expect(await rig.listed()).toMatchObject([{ ip_addresses: [text] }]);
});

test("the sweeper leaves it alone while it is written, and takes what nobody came back to", async () => {
  await using rig = await open();
  const { rewrite } = await rig.staged("192.0.2.2");
  await rig.sweep();
  expect(await rig.rows()).toBe(1);
  rig.later(600_001);
  const change = { added: ["192.0.2.2"], removed: [] };
  expect(await rig.run(async (work) => putRewrite(work, rig.place, rewrite, change))).toBe(false);
  await rig.sweep();
  expect(await rig.rows()).toBe(0);
});

test("what was dropped is swept at once", async () => {
  await using rig = await open();
  const { rewrite } = await rig.staged("192.0.2.2");
  await rig.run(async (work) => dropRewrite(work, rewrite));
  await rig.sweep();
  expect(await rig.rows()).toBe(0);
});
