// What customers do in the outside scene, each step compared with what visitors get afterwards: activate, clear, mark and unmark.

import { until } from "./until.ts";
import { exactWord } from "../../src/core/patterns/exact-word.ts";
import { settled, type Ledger } from "./outside-ledger.ts";
import type { Random } from "./outside-random.ts";
import type { Customer, OutsideAgent, OutsideScene } from "./outside-scene.ts";
import type { Visitors } from "./outside-visitors.ts";

const editionHeader = "x-devlove-edition";
const appliedWithinMs = 60_000;

const agentsOf = (scene: OutsideScene, customer: Customer): readonly OutsideAgent[] =>
  scene.agents.filter((agent) => agent.customer === customer);

/** A new devlove, whose answers name it: once it is told `applied`, every agent answers with it. */
export async function activate(
  ledger: Ledger,
  scene: OutsideScene,
  visitors: Visitors,
  customer: Customer,
  edition: number,
): Promise<void> {
  const { api, domain } = customer;
  const name = `edition-${edition}`;
  const devlove = {
    domains: {
      [domain]: {
        backend: { urls: [scene.origin.url] },
        headers: { set: { [editionHeader]: String(edition) } },
      },
    },
  };
  const made = await api.post(`/${domain}/devlove/${name}/`, {
    schema: "devlove/1",
    content: JSON.stringify(devlove),
  });
  if (made.status !== 201) throw new Error(`devlove: ${made.status} ${JSON.stringify(made.body)}`);
  type Version = { readonly id: number; readonly name: string; readonly activation: string };
  const versions = async (): Promise<readonly Version[]> =>
    (await api.get(`/active-viewset/${domain}/`)).body as readonly Version[];
  const version = (await versions()).find((one) => one.name === name);
  await api.put(`/active-viewset/${domain}/${version?.id}/`, {});
  const told = await until(
    "told applied",
    async () => (await versions()).find((one) => one.name === name)?.activation === "applied",
    appliedWithinMs,
  ).catch(() => false);
  ledger.compare(`${domain}: ${name} is told applied`, told, true);
  for (const agent of agentsOf(scene, customer)) {
    const { headers } = await visitors.ask(agent, `/private/edition-${edition}`);
    ledger.compare(`${agent.name} serves ${name}`, String(edition), headers[editionHeader]);
  }
}

type Cleared = {
  readonly clear_id: string;
  readonly deployments: readonly {
    readonly deployment_site_id: number;
    readonly state: string;
    readonly matched: number | null;
    readonly removed: number | null;
    readonly verified: boolean | null;
    readonly instances: readonly { readonly state: string; readonly matched: number | null }[];
  }[];
};

/** Clears a few URLs that are cached; the receipt counts what visitors know to be cached, and afterwards everybody gets the new edition. */
export async function clearAndCompare(
  ledger: Ledger,
  scene: OutsideScene,
  visitors: Visitors,
  customer: Customer,
  random: Random,
): Promise<void> {
  const { api, domain } = customer;
  const agents = agentsOf(scene, customer);
  const held = [...new Set(agents.flatMap((agent) => [...visitors.heldBy(agent)]))].sort();
  const chosen = Array.from({ length: Math.min(3, held.length) }, () => random.pick(held));
  const targets = [...new Set(chosen.filter((target) => target !== undefined))];
  if (targets.length === 0) return;
  const expected = agents
    .map((agent) => ({
      site: agent.site.id,
      matched: targets.filter((target) => visitors.heldBy(agent).has(target)).length,
    }))
    .sort((a, b) => a.site - b.site || a.matched - b.matched);
  scene.origin.edition++;
  const { status, body } = await api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
    url_path_patterns: targets.map((target) => `url:${exactWord(target)}`),
  });
  const { clear_id: id, deployments } = body as Cleared;
  const told = deployments
    .flatMap(({ deployment_site_id: site, instances }) =>
      instances.map(({ matched }) => ({ site, matched: matched ?? -1 })),
    )
    .sort((a, b) => a.site - b.site || a.matched - b.matched);
  const what = `clear ${id} of ${targets.join(" ")}`;
  ledger.compare(`${what}: status`, status, 200);
  ledger.compare(
    `${what}: states`,
    deployments.map(({ state }) => state),
    deployments.map(() => "applied"),
  );
  ledger.compare(`${what}: matched by instance`, told, expected);
  for (const agent of agents) {
    const own = visitors.heldBy(agent);
    for (const target of targets) {
      own.delete(target);
      const answer = await visitors.ask(agent, target);
      ledger.compare(
        `${agent.name} ${target} after ${id}`,
        answer.body.split(" of ", 1)[0],
        `edition ${scene.origin.edition}`,
      );
    }
  }
  // It is applied when it is answered; removed and verified soon after.
  const verified = deployments.map(() => true);
  await settled(ledger, `${what}: verified, asked for later`, verified, async () => {
    const later = (await api.get(`/clear-accelerator-cache/${domain}/${id}/`)).body as Cleared;
    return later.deployments.map(({ verified: isVerified }) => isVerified);
  });
}

const markWaitS = 20;

/** A marked address is blocked at every agent once that is told, and no other is; unmarked, it is served again. */
export async function markAndCompare(
  ledger: Ledger,
  scene: OutsideScene,
  visitors: Visitors,
  customer: Customer,
  no: number,
): Promise<void> {
  const { api, domain } = customer;
  const ip = `203.0.113.${(no % 200) + 1}`;
  const neighbour = `203.0.113.${(no % 200) + 2}`;
  const statuses = async (from: string): Promise<readonly number[]> => {
    const answers = [];
    for (const agent of agentsOf(scene, customer))
      answers.push((await visitors.ask(agent, "/private/marks", { ip: from })).status);
    return answers;
  };
  const all = (status: number): readonly number[] => agentsOf(scene, customer).map(() => status);
  const marked = await api.post(`/mark-as-bad-bot/${ip}/?wait=${markWaitS}`, {
    attach_to_bot: "outsider",
    attach_to_domain: domain,
  });
  ledger.compare(`mark of ${ip} for ${domain}`, states(marked.body), [
    200,
    allApplied(scene, customer),
  ]);
  ledger.compare(`${ip} at ${domain}, marked`, await statuses(ip), all(403));
  ledger.compare(`${neighbour} at ${domain}`, await statuses(neighbour), all(200));
  const removed = await api.post(`/remove-ip-from-bad-bot-list/${ip}/?wait=${markWaitS}`, {
    remove_from_bot: "outsider",
    remove_from_domain: domain,
  });
  ledger.compare(`removal of ${ip}`, removed.status, 200);
  ledger.compare(`${ip} at ${domain}, removed`, await statuses(ip), all(200));

  function states(answer: unknown): unknown {
    const { deployments = [] } = answer as {
      readonly deployments?: readonly { readonly state: string }[];
    };
    return [marked.status, deployments.map(({ state }) => state)];
  }
}

const allApplied = (scene: OutsideScene, customer: Customer): readonly string[] =>
  [...new Set(agentsOf(scene, customer).map(({ site }) => site.id))].map(() => "applied");
