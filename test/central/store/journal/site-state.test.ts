// What a deployment site is told of: the domains that are linked to it, and nothing of another site or customer.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import {
  domainsBody,
  linkedDomains,
  policyBodies,
  policyBody,
  policyBytes,
} from "../../../../src/central/store/journal/site-state.ts";
import { seedSite } from "../../../support/agent-side.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { chainStart } from "../../../../src/core/journal/journal-chain.ts";

const now = (): Date => new Date("2031-05-06T07:08:09.010Z");
const when_created = now().toISOString();

test("each site has the domains that are linked to it, and no other's", async () => {
  using dir = tempDir();
  await using store = await openStore(join(dir.path, "central.db"), now);
  const own = await seedSite(store, "00000000000000a1");
  const other = await seedSite(store, "00000000000000b2");
  // Of the same customer, and linked nowhere.
  const owner = { customer_id: own.customerId, created_by_user_id: 1, when_created };
  const unlinked = { ...owner, name: "unlinked.example.test", link_tags: null };
  await store
    .insertInto("domains")
    .values({ ...unlinked, active_viewset_id: null })
    .execute();
  const { id: emptyId } = await store
    .insertInto("deployment_sites")
    .values({
      ...owner,
      name16: "00000000000000c3",
      secret_sealed: "",
      when_deleted: null,
      journal_head: 0,
      journal_chain: chainStart,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await store
    .updateTable("domains")
    .set({ name: "b.test" })
    .where("id", "=", other.domainId)
    .execute();

  const names = async (siteId: number) =>
    (await linkedDomains(store, siteId)).map(({ name }) => name);
  expect(await names(own.siteId)).toEqual(["www.example.test"]);
  expect(await names(other.siteId)).toEqual(["b.test"]);
  expect(await names(emptyId)).toEqual([]);
  const share_views_and_views_dir_with_main_domain = true;
  const sub = { name: "img.www.example.test", share_views_and_views_dir_with_main_domain };
  expect(await domainsBody(store, own.siteId)).toEqual({
    domains: [{ name: "www.example.test", sub_domains: [sub] }],
  });
  expect(await domainsBody(store, other.siteId)).toEqual({
    domains: [{ name: "b.test", sub_domains: [sub] }],
  });
  expect(await domainsBody(store, emptyId)).toEqual({ domains: [] });
  const bytes = await policyBytes(store, own.customerId);
  await store
    .insertInto("general_policies")
    .values({
      customer_id: own.customerId,
      unknown_bots_can_access: 0,
      unknown_feeds_can_access: 1,
    })
    .execute();
  const { policy, classes } = await policyBodies(store, own.siteId);
  expect(classes).toEqual({ domains: [{ domain: "www.example.test", feed: true }] });
  expect(await policyBodies(store, emptyId)).toMatchObject({ classes: { domains: [] } });
  // What agents are told is bounded with the classes, and with the domain that is linked nowhere.
  const least = JSON.stringify(policy.domains).length + JSON.stringify(classes.domains).length;
  expect(await policyBytes(store, own.customerId)).toBeGreaterThan(Math.max(bytes, least));
  const told = async (siteId: number) =>
    (await policyBody(store, siteId)).domains.map(({ domain }) => domain);
  expect(await told(own.siteId)).toEqual(["www.example.test"]);
  expect(await told(other.siteId)).toEqual(["b.test"]);
  expect(await told(emptyId)).toEqual([]);
});
