// Faults of a lane, each planted from outside in what it answers from: what a comparison that is worth something must find.

import type { QuickDeps } from "../../../../src/agent/accelerator/lane/quick-answers.ts";
import type { ServedUnder } from "../../../../src/agent/accelerator/pool/host-table.ts";
import type { Entry } from "../../../../src/agent/cache/entry.ts";
import { toldCookiesName } from "../../../../src/core/http/http-vary.ts";
import type { EdgeParts } from "../edge.ts";

export type PlantedFault = { readonly name: string; readonly parts: Partial<EdgeParts> };

/** Returns the object with other methods in the place of some of its own. */
function instead<T extends object>(of: T, methods: { readonly [Name in keyof T]?: T[Name] }): T {
  return new Proxy(of, {
    get: (target, name) => {
      const other: unknown = Reflect.get(methods, name);
      if (other !== undefined) return other;
      const own: unknown = Reflect.get(target, name, target);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}

const quick = (change: (deps: QuickDeps) => Partial<QuickDeps>): Partial<EdgeParts> => ({
  quick: (deps) => ({ ...deps, ...change(deps) }),
});
const cache = (change: (own: QuickDeps["cache"]) => Partial<QuickDeps["cache"]>) =>
  quick(({ cache: own }) => ({ cache: instead(own, change(own)) }));

/** One in so many records. */
const recordsApart = 40;

function records(spoil: (accept: () => void) => void): Partial<EdgeParts> {
  let no = 0;
  return {
    records: (sink) => ({
      accept: (record, isClaimed) => {
        const accept = (): void => sink.accept(record, isClaimed);
        if (++no % recordsApart === 0) spoil(accept);
        else accept();
      },
    }),
  };
}

export const plantedFaults: readonly PlantedFault[] = [
  {
    name: "a stale Age",
    parts: quick(({ clock }) => ({
      clock: { ...clock, ageMs: () => Math.floor(clock.ageMs() / 3_000) * 3_000 },
    })),
  },
  {
    name: "HSTS over plain HTTP, and none over HTTPS",
    parts: quick(({ states }) => ({
      states: instead(states, {
        current: () => {
          const table = states.current();
          return instead(table, { route: (authority) => withOtherHsts(table.route(authority)) });
        },
      }),
    })),
  },
  {
    name: "a missed Vary",
    parts: cache((own) => ({
      findHeld: (key) => {
        const held = own.findHeld(key);
        return held && { ...held, entries: held.entries.map((one) => ({ ...one, vary: null })) };
      },
      isCurrent: () => false,
    })),
  },
  {
    name: "a missed cookie that a rule varies by",
    parts: cache((own) => ({
      findHeld: (key) => {
        const held = own.findHeld(key);
        return held && { ...held, entries: held.entries.map(withoutToldCookies) };
      },
      isCurrent: () => false,
    })),
  },
  { name: "a missed use", parts: cache(() => ({ noteHit: () => {} })) },
  { name: "a stale prepared answer", parts: cache(() => ({ servable: () => true, isCurrent: () => true })) }, // prettier-ignore
  {
    name: "an answer from a domain that is in doubt",
    parts: cache(() => ({ confirmed: () => true })),
  },
  {
    name: "a decision that is not noted",
    parts: quick(() => ({ decisions: { note: () => "0123456789abcdef" } })),
  },
  {
    name: "a verdict that is not counted",
    parts: quick(() => ({ tally: { judged: () => {} } })),
  },
  {
    name: "a variant that is not counted",
    parts: quick(({ metrics }) => ({
      metrics: {
        ...metrics,
        accel_agent_variants_served_total: instead(metrics.accel_agent_variants_served_total, {
          inc: () => {},
        }),
      },
    })),
  },
  {
    name: "a variant that is not offered",
    parts: quick(({ variants }) => ({ variants: instead(variants, { offer: () => {} }) })),
  },
  {
    name: "the form of a picture that is not counted",
    parts: quick(({ metrics }) => {
      const { accel_agent_image_variants_served_total: served } = metrics;
      const silent = instead(served, { inc: () => {} });
      return { metrics: { ...metrics, accel_agent_image_variants_served_total: silent } };
    }),
  },
  {
    name: "the form of a picture that is not offered",
    parts: quick(({ imageVariants }) => ({
      imageVariants: instead(imageVariants, { offer: () => {} }),
    })),
  },
  {
    name: "a form of another format than it says",
    parts: cache((own) => ({
      findHeld: (key) => {
        const held = own.findHeld(key);
        return held && { ...held, entries: held.entries.map(asOtherFormat) };
      },
      isCurrent: () => false,
    })),
  },
  {
    name: "a double record",
    parts: records((accept) => {
      accept();
      accept();
    }),
  },
  { name: "a lost record", parts: records(() => {}) },
];

function withoutToldCookies(entry: Entry): Entry {
  if (entry.vary?.[toldCookiesName] === undefined) return entry;
  return { ...entry, vary: { ...entry.vary, [toldCookiesName]: "" } };
}

function withOtherHsts<T extends { readonly kind: string } | ServedUnder>(found: T): T {
  if (!("compiled" in found) || found.compiled === undefined) return found;
  const { compiled } = found;
  const tls = { ...compiled.site.tls, hsts_s: compiled.site.tls.hsts_s === 0 ? 1 : 0 };
  return { ...found, compiled: { ...compiled, site: { ...compiled.site, tls } } };
}

function asOtherFormat(entry: Entry): Entry {
  return entry.form === "avif" ? { ...entry, form: "webp" } : entry;
}
