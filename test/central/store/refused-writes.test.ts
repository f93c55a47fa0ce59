// A write that the store refuses fails what it belongs to: nothing is answered as done while a part of it is still on its way or has failed.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { createSealer } from "../../../src/base/seal.ts";
import { BotImports } from "../../../src/central/store/bots/bot-import.ts";
import { openBlobs } from "../../../src/central/store/content/blobs.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { openStore } from "../../../src/central/store/engine/database.ts";
import {
  confirmDeliveries,
  saveHello,
  saveReport,
} from "../../../src/central/store/journal/instances.ts";
import { noteSeen } from "../../../src/central/store/journal/instances-seen.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { parseRange } from "../../../src/core/addresses/ip.ts";
import type { Hello } from "../../../src/wire/channel.ts";
import { seedSite } from "../../support/agent-side.ts";
import { reportOf } from "../../support/fake-agent.ts";
import { tempDir } from "../../support/temp-dir.ts";
import type { Work } from "../../../src/central/store/engine/work.ts";
import { addCustomer } from "../../../src/central/store/people/customers.ts";
import { addUser } from "../../../src/central/store/people/users.ts";
import { lockUser, setEmail } from "../../../src/central/store/people/people.ts";
import { attachElements } from "../../../src/central/store/bots/bots.ts";

const at = "2031-05-06T07:08:09.010Z";
const now = (): Date => new Date(at);
const host = "www.example.test";

async function open() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const store = stack.use(await openStore(join(dir, "central.db"), now));
  const { siteId, domainId } = await seedSite(store);
  const sealer = createSealer(Buffer.alloc(32, 7));
  const customers = new CustomerStore({ store, sealer, now, randomBytes });
  const imports = new BotImports(customers, () => undefined);
  const held = stack.move();
  return {
    dir,
    store,
    siteId,
    domainId,
    /** In one transaction, which is kept. */
    run: async <T>(action: (work: Work) => Promise<T>): Promise<T> => customers.transact(action),
    list: async (text: string, isReplacing: boolean) => {
      const what = { domain: host, customerId: undefined, set: "bad", bot: "list" } as const;
      const body = (async function* () {
        yield Buffer.from(text);
      })();
      const { signal } = new AbortController();
      return imports.run({ ...what, isReplacing, operator: undefined }, body, signal);
    },
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

type Rig = Awaited<ReturnType<typeof open>>;
const position = {
  epoch: null,
  applied_seq: 0,
  chain: chainStart,
  oldest_unfinished: null,
};
const hello: Hello = {
  type: "hello",
  agent_version: "1.0.0",
  instance_id: "instance-1",
  boot_id: "b1",
  epoch: null,
  applied_seq: 0,
  chain: position.chain,
  edge: null,
};
const known = (rig: Rig) =>
  confirmDeliveries(rig.store, [{ deploymentSiteId: rig.siteId, instanceId: "instance-1" }], at);
const range = () => {
  const parsed = parseRange("192.0.2.1");
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.range;
};
const person = { email: "a@x.org", first_name: "", last_name: "", password_hash: null };

/** A user with a link to a new token. */
async function recovering({ store, run }: Rig): Promise<number> {
  const customerId = await run(async (work) => addCustomer(work, "Acme"));
  const id = await run(async (work) =>
    addUser(work, { ...person, customer_id: customerId, username: "ada" }),
  );
  const userId = Number(id);
  await store
    .insertInto("recoveries")
    .values({ digest: "d", user_id: userId, expires_at: "2031-05-06T08:00:00.000Z" })
    .execute();
  return userId;
}

test.each<{
  readonly what: string;
  /** What the store refuses: a verb and a table, perhaps with a condition. */
  readonly refused: string;
  readonly where?: string;
  readonly before?: (rig: Rig) => Promise<unknown>;
  readonly act: (rig: Rig) => Promise<unknown>;
}>([
  {
    what: "a hello",
    refused: "UPDATE ON instances",
    before: known,
    act: async ({ store, siteId }) => saveHello(store, siteId, hello, at),
  },
  {
    what: "a position",
    refused: "UPDATE ON instances",
    before: known,
    act: async ({ store, siteId: deploymentSiteId }) =>
      noteSeen(store, [{ deploymentSiteId, instanceId: "instance-1", position }], at),
  },
  {
    what: "a report",
    refused: "UPDATE ON instances",
    act: async ({ store, siteId }) => saveReport(store, siteId, reportOf("instance-1", 0), at),
  },
  {
    what: "the first hello of an instance",
    refused: "INSERT ON instances",
    act: async ({ store, siteId }) => saveHello(store, siteId, hello, at),
  },
  {
    what: "the confirmation of a delivery",
    refused: "UPDATE ON instances",
    before: known,
    act: known,
  },
  {
    what: "an instance that was never seen",
    refused: "INSERT ON instances",
    act: known,
  },
  {
    what: "another address, while a link lies in the mailbox of the one before",
    refused: "DELETE ON recoveries",
    before: recovering,
    act: async ({ run }) => run(async (work) => setEmail(work, 1, "b@x.org")),
  },
  {
    what: "the end of a user's access, while a link is good",
    refused: "DELETE ON recoveries",
    before: recovering,
    act: async ({ run }) => run(async (work) => lockUser(work, 1)),
  },
  {
    what: "a blob",
    refused: "INSERT ON blobs",
    act: async ({ dir, store }) =>
      (await openBlobs(join(dir, "blobs"), store, now)).put(Buffer.from("views")),
  },
  {
    what: "a list in the place of the one before",
    refused: "INSERT ON bots",
    // Not the number under which it is staged.
    where: "new.name = 'list'",
    act: async ({ list }) => list("192.0.2.1", true),
  },
  {
    what: "a list that gives way",
    refused: "DELETE ON bots",
    where: "old.name = 'list'",
    before: async ({ list }) => list("192.0.2.1", true),
    act: async ({ list }) => list("192.0.2.2", true),
  },
  {
    what: "a list that is added to",
    refused: "UPDATE ON bots",
    where: "old.name = 'list'",
    before: async ({ list }) => list("192.0.2.1", true),
    act: async ({ list }) => list("192.0.2.2", false),
  },
  {
    what: "the version of a set that a mark makes",
    refused: "UPDATE ON bot_sets",
    act: async ({ run, domainId }) =>
      run(async (work) =>
        attachElements(work, { domainId, host, set: "bad", bot: "x" }, [range()], 1_000),
      ),
  },
])("$what is refused where the store refuses $refused", async ({ refused, where, before, act }) => {
  await using rig = await open();
  await before?.(rig);
  const when = where === undefined ? "" : `WHEN ${where}`;
  const trigger = `CREATE TRIGGER refuses BEFORE ${refused} ${when} BEGIN SELECT RAISE(ABORT, 'no room'); END`;
  await sql.raw(trigger).execute(rig.store);
  await expect(act(rig)).rejects.toThrow("no room");
  await sql`DROP TRIGGER refuses`.execute(rig.store);
  await act(rig);
});
