// The journal of a deployment site: what central wants, in order. Chain digests: `core/journal/journal-chain.ts`.

import { Type, type Static, type TSchema } from "typebox";
import { patternCharsMax, patternsMax } from "../core/patterns/pattern-budget.ts";
import { ChallengesChanged } from "./challenges.ts";
import { ClearExtension } from "./clear-items.ts";
import { closed, decoder } from "./validate.ts";
import { Count, Detail, Epoch, HostText, Seq, Sha256Text, Timestamp } from "./parts.ts";
import { CertificatesChanged, KeysChanged } from "./vault.ts";

export const BotElement = closed({
  bot: Type.String({ minLength: 1, maxLength: 255 }),
  range: Type.String({ maxLength: 49 }),
});
export const BotSetName = Type.Union([Type.Literal("bad"), Type.Literal("vip")]);

export const SubDomain = closed({
  name: HostText,
  share_views_and_views_dir_with_main_domain: Type.Boolean(),
});

/** One kind of entry. */
type KindRow<Schema extends TSchema> = {
  /**
   * The schema of the body. The body of a state kind carries the whole state of its lane, or names it by
   * digest.
   */
  readonly schema: Schema;
  /** Returns the lane of an entry. Entries of one lane are applied one after another, lanes side by side. */
  readonly lane: (body: Static<Schema>) => string;
  /** Whether a later entry of the kind in the same lane makes this one needless. */
  readonly isState: boolean;
  /** Further kinds whose later entries in the same lane make this one needless. */
  readonly endedBy?: readonly string[];
  /** The schema of the extension that an entry may have beside its body; absent: none. */
  readonly extension?: TSchema;
};

/** A kind that carries the whole state of a site, for which the snapshot has a field. */
type StateRow<Schema extends TSchema, Field extends string> = KindRow<Schema> & {
  readonly isState: true;
  readonly snapshot: Field;
};

function kind<Schema extends TSchema, Row extends KindRow<Schema>>(
  row: Row & KindRow<Schema>,
): Row & KindRow<Schema> {
  return row;
}

function siteState<Schema extends TSchema, const Field extends string>(
  row: Omit<StateRow<Schema, Field>, "isState">,
): StateRow<Schema, Field> {
  return { ...row, isState: true };
}

/**
 * The lane in which nothing overtakes an earlier entry, because what an entry concerns depends on what is
 * linked.
 */
export const domainsLane = "domains";

/** The longest time for which an agent may be asked to hold what it prepared: a day. */
export const holdSecondsMax = 86_400;

/**
 * One row for each kind. Lanes, the snapshot and what supersedes what follow from it;
 * docs/internals/hacking.md shows how to add a kind.
 */
export const journalKinds = {
  "viewset.activated": kind({
    schema: closed({
      domain: HostText,
      viewset_id: Type.Integer(),
      viewset_name: Type.String(),
      manifest: Sha256Text,
    }),
    lane: ({ domain }) => `viewset:${domain}`,
    isState: true,
  }),
  /**
   * Asks each instance whether it can serve a version: it fetches, checks and probes it, holds it for `hold_s`
   * seconds and changes nothing else. Its receipt is its vote (core/serving/fleet-activation.ts). An agent that does
   * not know the kind refuses it, and so votes no.
   */
  "viewset.prepare": kind({
    schema: closed({
      domain: HostText,
      viewset_id: Type.Integer(),
      viewset_name: Type.String(),
      manifest: Sha256Text,
      activation_id: Type.Integer({ minimum: 1 }),
      hold_s: Type.Integer({ minimum: 1, maximum: holdSecondsMax }),
    }),
    lane: ({ domain }) => `viewset:${domain}`,
    isState: true,
    endedBy: ["viewset.activated", "viewset.withdrawn"],
  }),
  /** The activation of a fleet was given up: what was prepared for it is held no longer. */
  "viewset.withdrawn": kind({
    schema: closed({ domain: HostText, activation_id: Type.Integer({ minimum: 1 }) }),
    lane: ({ domain }) => `viewset:${domain}`,
    isState: false,
  }),
  /**
   * `host` null means the main domain and its sub-domains; otherwise only that host is cleared. Where the entry
   * has items, they say what is cleared, and the patterns match all of it and more.
   */
  "cache.clear": kind({
    schema: closed({
      clear_id: Type.String({ minLength: 1, maxLength: 64 }),
      domain: HostText,
      host: Type.Union([HostText, Type.Null()]),
      patterns: Type.Array(Type.String({ maxLength: patternCharsMax }), {
        minItems: 1,
        maxItems: patternsMax,
      }),
    }),
    extension: ClearExtension,
    lane: () => "clears",
    isState: false,
  }),
  /** `domain` is the main domain or the sub-domain that the set belongs to. */
  "bots.changed": kind({
    schema: closed({
      domain: HostText,
      set: BotSetName,
      from_version: Count,
      to_version: Count,
      added: Type.Array(BotElement),
      removed: Type.Array(BotElement),
      /** The count of the set that results; its digest is by `core/addresses/set-digest.ts`. */
      count: Count,
      digest: Sha256Text,
      shrink_meant: Type.Boolean(),
    }),
    lane: ({ domain, set }) => `bots:${domain}:${set}`,
    isState: true,
  }),
  /** The effective policy of every linked domain; `domain` may be a sub-domain with a policy or pairs of its own. */
  "policy.changed": siteState({
    schema: closed({
      domains: Type.Array(
        closed({
          domain: HostText,
          unknown_bots_can_access: Type.Union([Type.Boolean(), Type.Null()]),
          /** The domain whose own policy says so; absent if the general policy does, or none. */
          unknown_bots_policy_of: Type.Optional(HostText),
          allow: Type.Array(Type.String()),
          deny: Type.Array(Type.String()),
        }),
      ),
    }),
    lane: () => "policy",
    snapshot: "policy",
  }),
  /**
   * What policies say of classes of unknown bots, beside `unknown_bots_can_access` of `policy.changed`; of a host or a
   * class that is not named they say nothing. It comes into force with the `policy.changed` behind it. An agent that does not know the kind refuses it and goes by `policy.changed` alone.
   */
  "policy.classes": kind({
    schema: closed({
      domains: Type.Array(
        closed({
          domain: HostText,
          crawler: Type.Optional(Type.Boolean()),
          feed: Type.Optional(Type.Boolean()),
          library: Type.Optional(Type.Boolean()),
        }),
      ),
    }),
    lane: () => "policy",
    isState: true,
  }),
  /** All domains linked to the site. */
  "domains.changed": siteState({
    schema: closed({
      domains: Type.Array(closed({ name: HostText, sub_domains: Type.Array(SubDomain) })),
    }),
    lane: () => domainsLane,
    snapshot: "domains",
  }),
  "key.changed": siteState({
    schema: KeysChanged,
    lane: () => "certificates",
    snapshot: "keys",
  }),
  "certificate.changed": siteState({
    schema: CertificatesChanged,
    lane: () => "certificates",
    snapshot: "certificates",
  }),
  /**
   * The open challenges of a domain's order of a certificate; an empty list ends them. An agent that does not know the
   * kind refuses it and goes on.
   */
  "challenges.changed": kind({
    schema: ChallengesChanged,
    lane: ({ domain }) => `challenges:${domain}`,
    isState: true,
  }),
  /**
   * The agent uploads what `views_dir` and `devlove_file` of its settings hold; the receipt names the
   * manifest. An import only reads the host's files, so it does not hold up what is to be served.
   */
  "viewset.import": kind({
    schema: closed({
      import_id: Type.String({ minLength: 1, maxLength: 64 }),
      domain: HostText,
    }),
    lane: ({ domain }) => `import:${domain}`,
    isState: false,
  }),
};

type Kinds = typeof journalKinds;
export type JournalKind = keyof Kinds;
export type JournalBody<K extends JournalKind> = Static<Kinds[K]["schema"]>;
export type BotSet = Static<typeof BotSetName>;
/** The extension of a kind's entries; `never` where it has none. */
export type JournalExtension<K extends JournalKind> = Kinds[K] extends {
  readonly extension: infer Schema extends TSchema;
}
  ? Static<Schema>
  : never;

/** The kinds whose body is a field of the snapshot, by that field. */
type SiteStateKinds = {
  [
    K in JournalKind as Kinds[K] extends { snapshot: infer Field extends string } ? Field : never
  ]: K;
};
export type SiteStateField = keyof SiteStateKinds;
export type SiteStates = {
  readonly [Field in SiteStateField]: JournalBody<SiteStateKinds[Field]>;
};

export type SiteStateSchemas = {
  [Field in SiteStateField]: Kinds[SiteStateKinds[Field]]["schema"];
};

/** The kinds that carry a state, in the order of the table. */
export const siteStates = Object.entries(journalKinds).flatMap(([name, row]) =>
  // Keys and values come from the table above.
  "snapshot" in row ? [{ field: row.snapshot, kind: name as SiteStateKinds[SiteStateField] }] : [],
);

/**
 * An entry as it travels. The body is checked by its kind on arrival, so that one unknown kind refuses one
 * entry, not the channel.
 */
export const JournalEntry = closed({
  seq: Seq,
  kind: Type.String({ maxLength: 64 }),
  at: Timestamp,
  body: Detail,
  /**
   * Says more than the body, to agents that take extensions (`position.ts`). The chain digest does not cover
   * it, so the history is the same to all. An agent that does not take it, or cannot read it, obeys the body
   * alone, which asks for as much or more.
   */
  extension: Type.Optional(Detail),
  chain: Sha256Text,
});
export type JournalEntry = Static<typeof JournalEntry>;

/** Stands for entries that later ones replaced. `chain` is the digest at `to_seq`. */
export const SupersededEntries = closed({
  from_seq: Seq,
  to_seq: Seq,
  superseded: Type.Literal(true),
  chain: Sha256Text,
});
export type SupersededEntries = Static<typeof SupersededEntries>;

export const JournalItem = Type.Union([JournalEntry, SupersededEntries]);
export type JournalItem = Static<typeof JournalItem>;

/**
 * The answer to `GET /agent-api/v1/journal?after=SEQ&epoch=E&chain=C[&wait=30]`. `resync` tells the agent to
 * take the snapshot; `entries` is then empty.
 */
export const JournalPage = closed({
  epoch: Epoch,
  head_seq: Seq,
  resync: Type.Boolean(),
  entries: Type.Array(JournalItem),
});
export type JournalPage = Static<typeof JournalPage>;
export const decodeJournalPage = decoder(JournalPage);

/** The most entries in a page or a channel message. */
export const journalPageEntriesMax = 500;

const extensionDecoders = new Map(
  Object.entries<KindRow<TSchema>>(journalKinds).flatMap(([name, { extension }]) =>
    extension === undefined ? [] : [[name, decoder<TSchema>(extension)] as const],
  ),
);

const bodyDecoders = Object.fromEntries(
  Object.entries(journalKinds).map(([name, { schema }]) => [name, decoder<TSchema>(schema)]),
);

/** A known kind with a valid body, tagged for exhaustive switches. */
export type KnownEntry = {
  [K in JournalKind]: {
    readonly seq: number;
    readonly at: string;
    readonly kind: K;
    readonly body: JournalBody<K>;
    readonly extension?: JournalExtension<K>;
  };
}[JournalKind];
export type EntryDecoded =
  /** `unread`: why the extension was left out; the body alone counts. */
  | { readonly ok: true; readonly entry: KnownEntry; readonly unread?: string }
  | { readonly ok: false; readonly reason: string };

export function decodeEntry({ seq, at, kind, body, extension }: JournalEntry): EntryDecoded {
  const decode = bodyDecoders[kind];
  if (decode === undefined)
    return { ok: false, reason: `this agent does not know entries of kind ${kind}` };
  const decoded = decode(body);
  if (!decoded.ok)
    return {
      ok: false,
      reason: `the body of ${kind} is not valid: ${faultsText(decoded.errors)}`,
    };
  // Kind and body were checked together just above.
  const entry = { seq, at, kind, body: decoded.value } as KnownEntry;
  if (extension === undefined) return { ok: true, entry };
  const more = extensionDecoders.get(kind)?.(extension);
  if (more?.ok === true)
    return { ok: true, entry: { ...entry, extension: more.value } as KnownEntry }; // By the kind's own schema.
  const unread =
    more === undefined
      ? `this agent knows no extension of ${kind}`
      : `this agent cannot read the extension of ${kind}: ${faultsText(more.errors)}`;
  return { ok: true, entry, unread };
}

function faultsText(
  errors: readonly { readonly path: string; readonly message: string }[],
): string {
  return errors.map(({ path, message }) => `${path} ${message}`).join("; ");
}

/** Returns the kinds of which a later entry in the same lane makes one of this kind needless. */
export function enders(name: JournalKind): readonly string[] {
  const { isState, endedBy = [] }: KindRow<TSchema> = journalKinds[name];
  return isState ? [name, ...endedBy] : endedBy;
}

export function laneOf({ kind: name, body }: KnownEntry): string {
  // Kind and body belong together, which TypeScript does not follow through the table.
  const { lane }: KindRow<TSchema> = journalKinds[name];
  return lane(body);
}
