// What operators' commands do with rollouts of releases: start, show, pause, resume, send back.

import type { ControlRoutes } from "../../base/control-socket.ts";
import { AccelError } from "../../core/faults.ts";
import { orderOf, type RolloutPlan, type RolloutState } from "../../core/rollout/rollout.ts";
import { rolloutDefaults } from "../../core/rollout/rollout-plan.ts";
import { goBack, pauseRollout, resumeRollout } from "../../core/rollout/rollout-step.ts";
import {
  decodeRolloutChange,
  decodeRolloutList,
  decodeRolloutStart,
  decodeRolloutStatus,
  type RolloutLimits,
} from "../../wire/operator-rollout.ts";
import { change, handler, noCustomer, pages, read } from "./operator-routes.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import type { Work } from "../store/engine/work.ts";
import { hostTitles } from "../store/journal/instances.ts";
import { listCustomers } from "../store/people/people.ts";
import {
  createRollout,
  idsOf,
  lastRolloutId,
  listRollouts,
  newerRolloutId,
  rolloutOf,
  saveRollout,
  type StoredRollout,
} from "../store/rollouts/rollouts.ts";
import { standingsOf } from "../store/rollouts/standings.ts";

type Asked = { readonly operator: string; readonly rollout_id: number; readonly reason?: string };

export function operatorRolloutRoutes(store: Transactions): ControlRoutes {
  return {
    "rollout-start": handler(decodeRolloutStart, async (asked) => {
      const { operator, customer_id: customerId, release, tag, limits } = asked;
      return change(store, operator, "rollout start", async (work, tell) => {
        const [customer] = await listCustomers(work, customerId, { after: 0, limit: 1 });
        if (customer === undefined) throw noCustomer(customerId);
        const plan = planOf(limits);
        const made = await createRollout(work, {
          customerId,
          release,
          tag,
          plan,
          startedBy: operator,
        });
        tell({
          customer_id: customerId,
          ids: { rollout_id: made.id },
          change: { release, tag: tag ?? null, plan: { ...plan } },
        });
        return headOf(made);
      });
    }),
    "rollout-status": handler(decodeRolloutStatus, async function* ({ rollout_id: asked }) {
      const id = asked ?? (await read(store, async ({ tx }) => lastRolloutId(tx)));
      if (id === undefined) throw new AccelError("NOT_FOUND", "there was no rollout yet");
      yield* await read(store, async (work) => statusOf(work, id));
    }),
    "rollout-list": handler(decodeRolloutList, ({ customer_id: customerId }) =>
      pages(store, async (work, range) => listRollouts(work, customerId, range)),
    ),
    "rollout-pause": changing(store, "pause", ["running"], (found, why) =>
      pauseRollout(found.rollout, why),
    ),
    "rollout-resume": changing(store, "resume", ["paused"], (found) =>
      resumeRollout(found.rollout),
    ),
    "rollout-back": changing(store, "back", ["running", "paused", "done"], (found, why, at) =>
      goBack(found.rollout, why, Date.parse(at)),
    ),
  };
}

/** A change of a rollout that is in one of these states. */
function changing(
  store: Transactions,
  verb: string,
  from: readonly RolloutState[],
  next: (found: StoredRollout, why: string, at: string) => StoredRollout["rollout"],
): ControlRoutes[string] {
  return handler(decodeRolloutChange, async ({ operator, rollout_id: id, reason }: Asked) =>
    change(store, operator, `rollout ${verb}`, async (work, tell) => {
      const found = await rolloutOf(work.tx, id);
      if (!from.includes(found.rollout.state))
        throw new AccelError("CONFLICT", `rollout ${id} is ${found.rollout.state}`);
      const newer = await newerRolloutId(work.tx, found);
      if (newer !== undefined)
        throw new AccelError(
          "CONFLICT",
          `rollout ${newer} of this customer came after rollout ${id}: what its hosts run is its matter`,
        );
      const why = `${verb} by ${operator}${reason === undefined ? "" : `: ${reason}`}`;
      const after = next(found, why, work.at);
      await saveRollout(work, found, after);
      tell({
        customer_id: found.customerId,
        ids: { rollout_id: id },
        change: { release: after.release, reason: reason ?? null },
      });
      return headOf(await rolloutOf(work.tx, id));
    }),
  );
}

function planOf(limits: RolloutLimits): RolloutPlan {
  const errors = limits.errors_percent;
  return {
    ...rolloutDefaults,
    ...(limits.canary !== undefined && { canary: limits.canary }),
    ...(limits.wave_percent !== undefined && { wavePercent: limits.wave_percent }),
    ...(limits.soak_ms !== undefined && { soakMs: limits.soak_ms }),
    ...(limits.grace_ms !== undefined && { graceMs: limits.grace_ms }),
    ...(limits.install_ms !== undefined && { installMs: limits.install_ms }),
    ...(limits.silence_ms !== undefined && { silenceMs: limits.silence_ms }),
    ...(limits.bound_ms !== undefined && { boundMs: limits.bound_ms }),
    ...(limits.restarts !== undefined && { restartsMax: limits.restarts }),
    ...(errors !== undefined && { errorShareMax: errors / 100 }),
    ...(limits.misses !== undefined && { missesMax: limits.misses }),
  };
}

function headOf({ id, customerId, tag, startedBy, endedAt, rollout }: StoredRollout) {
  const { release, state, reason, startedMs, members } = rollout;
  const counts = Object.fromEntries(
    [...Map.groupBy(members, (member) => member.state)].map(([name, of]) => [name, of.length]),
  );
  return {
    rollout_id: id,
    customer_id: customerId,
    release,
    tag,
    state,
    reason,
    started_by: startedBy,
    when_started: new Date(startedMs).toISOString(),
    when_ended: endedAt,
    hosts: counts,
  };
}

/** Yields the rollout, then each host. */
async function statusOf(work: Work, id: number) {
  const found = await rolloutOf(work.tx, id);
  const { rollout } = found;
  const siteIds = rollout.members.map(({ siteId }) => siteId);
  const standings = await standingsOf(work.tx, siteIds);
  const titles = await hostTitles(work.tx, siteIds);
  const hosts = rollout.members.map((member) => {
    const [siteId, instanceId] = idsOf(member);
    const standing = standings.get(member.key);
    return {
      deployment_site_id: siteId,
      instance_id: instanceId,
      server_name: titles.get(member.key)?.serverName ?? null,
      host_name: titles.get(member.key)?.hostName ?? null,
      had: member.had,
      wants: orderOf(rollout, member)?.version ?? null,
      has: standing?.version ?? null,
      state: member.state,
      reason: member.reason,
      since: new Date(member.sinceMs).toISOString(),
      heard: standing === undefined ? null : new Date(standing.heardMs).toISOString(),
    };
  });
  return [headOf(found), ...hosts];
}
