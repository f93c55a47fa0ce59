// Two centrals on one PostgreSQL: what one is told reaches the agents whose channels the other holds, and both append to one journal without a gap.

import { expect, test } from "vitest";
import { bodyDigest, chainStart, nextChain } from "../../../src/core/journal/journal-chain.ts";
import { databaseOf, onPostgres } from "../../support/any-store.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent } from "../../support/fake-agent.ts";
import { createPostgresWakeBus } from "../../support/postgres-wake.ts";
import { startPostgres } from "../../support/postgres.ts";
import { postgresBin } from "../../support/postgres-server.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const bin = postgresBin();
const entriesEach = 25;
const noDomains = { domains: [] };

test.skipIf(bin === undefined)(
  "one wakes the channels of the other, and their entries are one chain",
  async () => {
    await using postgres = await startPostgres(bin ?? "");
    onPostgres(postgres);
    using dir = tempDir();
    using other = tempDir();
    const database = databaseOf(`${dir.path}/central.db`);
    await using first = await startAgentSide({ stateDir: dir.path });
    const { siteId } = await seedSite(first.store);
    await using stack = new AsyncDisposableStack();
    const busOf = async () => {
      const client = postgres.client(database);
      await client.connect();
      stack.defer(async () => client.end());
      return createPostgresWakeBus(client);
    };
    const tells = await busOf();
    await using second = await startAgentSide({
      stateDir: other.path,
      database: `${dir.path}/central.db`,
      bus: await busOf(),
    });
    expect(second.agentStore.epoch).toBe(first.agentStore.epoch);
    // The token was given by the one, the channel is the other's.
    const { token } = await connectAgent(first.url, name16, secret16);
    const agent = await connectAgent(second.url, name16, secret16, token);
    using channel = await agent.channel();
    channel.hello(first.agentStore.epoch);
    await channel.next("welcome");
    const append = async (side: typeof first): Promise<void> => {
      await side.append(siteId, "domains.changed", noDomains);
      tells.publish([siteId]);
    };
    for (let no = 0; no < entriesEach; no++) await Promise.all([append(first), append(second)]);
    await until("all entries", () => channel.entries.length === 2 * entriesEach);
    let chain: string = chainStart;
    for (const [at, entry] of channel.entries.entries()) {
      const { seq, kind, at: when } = entry;
      chain = nextChain(chain, { seq, kind, at: when, bodyDigest: bodyDigest(noDomains) });
      expect([seq, entry.body, entry.chain]).toEqual([at + 1, noDomains, chain]);
    }
  },
  300_000,
);
