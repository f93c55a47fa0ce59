// Receipts that correct what was told of an entry before: the highest says how it is, in whatever order and however often they arrive.

import { afterAll, beforeAll, expect, test } from "vitest";
import { readProof } from "../../../src/central/store/journal/proof.ts";
import type { Receipt } from "../../../src/wire/receipt.ts";
import { seedSite, startAgentSide, type AgentSide } from "../../support/agent-side.ts";

const instance = "instance-1";
const domains = { domains: [] };

const told = (seq: number, phase: Receipt["phase"], detail: Receipt["detail"] = {}): Receipt => ({
  seq,
  phase,
  detail,
  took_ms: 1,
});
const applied = told(1, "applied");
const failed = told(1, "failed", { reason: "on trial", correction: 1 });
const pinned = told(1, "refused", { reason: "pinned", pinned: true, correction: 2 });
const again = told(1, "applied", { correction: 3 });
const once = told(1, "failed", { reason: "once more", correction: 4 });

let side: AgentSide;
let siteId: number;
beforeAll(async () => {
  side = await startAgentSide();
  ({ siteId } = await seedSite(side.store));
});
afterAll(async () => side[Symbol.asyncDispose]());

async function stateOf(seq: number): Promise<string> {
  const { state, error } = await readProof(side.store, siteId, seq, side.clock.ms);
  return error ?? state;
}

test.each<[string, readonly Receipt[], string]>([
  ["a correction counts", [applied, failed], "on trial"],
  ["it came first", [failed, applied], "on trial"],
  ["the last counts", [applied, failed, pinned], "pinned"],
  ["and not because it came last", [pinned, failed, applied], "pinned"],
  ["what is applied after all is applied", [applied, failed, pinned, again], "applied"],
  ["of one phase too", [applied, failed, again, once], "once more"],
  ["told again, an older one changes nothing", [applied, failed, again, once, failed], "once more"],
])("%s", async (_, receipts, state) => {
  const seq = await side.append(siteId, "domains.changed", domains);
  for (const receipt of receipts)
    await side.agentStore.saveReceipts(siteId, instance, [{ ...receipt, seq }]);
  expect(await stateOf(seq)).toBe(state);
});

test("they may come in one batch", async () => {
  const seq = await side.append(siteId, "domains.changed", domains);
  const all = [applied, failed, pinned, again, once].map((receipt) => ({ ...receipt, seq }));
  await side.agentStore.saveReceipts(siteId, instance, all);
  expect(await stateOf(seq)).toBe("once more");
});

test("a correction at the place of a snapshot leaves what the snapshot covers", async () => {
  const seqs = [];
  for (let no = 0; no < 3; no++) seqs.push(await side.append(siteId, "domains.changed", domains));
  const [first = 0, , last = 0] = seqs;
  const snapshot = told(last, "applied", { snapshot: true, cleared: [] });
  const refused = told(first, "refused", { reason: "not valid", correction: 1 });
  const here = told(last, "applied", { correction: 2 });
  await side.agentStore.saveReceipts(siteId, instance, [snapshot, refused, here]);
  const states = [];
  for (const seq of seqs) states.push(await stateOf(seq));
  // The first was refused all the same: the snapshot does not speak for what was told of it.
  expect(states).toEqual(["not valid", "applied", "applied"]);
});
