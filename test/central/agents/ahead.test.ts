// An agent that says it is ahead of its journal, or in another history: its own deployment site takes the state anew, and nobody else notices.

import { expect, test } from "vitest";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent } from "../../support/fake-agent.ts";
import { storeEpoch } from "../../../src/central/store/engine/database.ts";
import { until } from "../../support/until.ts";

const other16 = "00112233445566ab";
const noDomains = { domains: [] };

test("the epoch stays, and channels of other sites, and of other instances of the site, go on", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const { siteId: otherId } = await seedSite(side.store, other16);
  const epoch = await storeEpoch(side.store);
  const first = await connectAgent(side.url, name16, secret16);
  const other = await connectAgent(side.url, other16, secret16);
  using calm = await other.channel();
  using sibling = await first.channel();
  using liar = await first.channel();
  calm.hello(epoch);
  sibling.hello(epoch, 0, undefined, "instance-2");
  await calm.next("welcome");
  await sibling.next("welcome");
  await side.append(siteId, "domains.changed", noDomains);
  await side.append(otherId, "domains.changed", noDomains);

  const tales: readonly (readonly [epoch: string, seq: number, chain?: string])[] = [
    [epoch, 9_007_199_254_740_991],
    [epoch, 1, "f".repeat(64)],
    ["0".repeat(32), 1],
  ];
  for (const [at, [told, seq, chain]] of tales.entries()) {
    liar.hello(told, seq, chain);
    expect(await liar.next("welcome", at + 1)).toMatchObject({ epoch, head_seq: 1 });
    await liar.next("resync", at + 1);
    // What it proves of a history of its own is acknowledged, and no proof of this one.
    liar.receipt(1, "applied");
    await liar.next("receipt_ack", at + 1);
  }
  expect(await side.store.selectFrom("receipts").selectAll().execute()).toEqual([]);
  expect(await storeEpoch(side.store)).toBe(epoch);
  expect(await side.store.selectFrom("restores").selectAll().execute()).toEqual([]);
  await side.append(otherId, "domains.changed", noDomains);
  await until("the other site's entries", () => calm.entries.length === 2);
  await side.append(siteId, "domains.changed", noDomains);
  await until("the sibling's entries", () => sibling.entries.length === 2);
  for (const channel of [calm, sibling])
    expect([channel.closed, channel.all("resync")]).toEqual([undefined, []]);
  expect((await other.call("/journal")).status).toBe(200);
});
