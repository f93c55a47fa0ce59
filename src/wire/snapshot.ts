// `GET /agent-api/v1/snapshot`: the whole desired state of a deployment site at one journal position, read in one transaction.

import { Type, type Static } from "typebox";
import { closed, decoder } from "./validate.ts";
import {
  BotElement,
  BotSetName,
  journalKinds,
  siteStates,
  type SiteStateSchemas,
} from "./journal.ts";
import { Count, Epoch, HostText, Seq, Sha256Text } from "./parts.ts";

/**
 * The state of one set. The whole set is a blob with each element once, as canonical JSON `{bot, range}` on
 * its own line, so it is written and read in pieces.
 */
export const BotSetState = closed({
  domain: HostText,
  set: BotSetName,
  version: Count,
  count: Count,
  digest: Sha256Text,
  blob: Sha256Text,
  /**
   * Whether the set shrank to half or less because somebody asked for it; then a set with fewer elements may
   * replace a larger one.
   */
  shrink_meant: Type.Boolean(),
});
export type BotSetState = Static<typeof BotSetState>;

/** One line of a set's blob, parsed as JSON. */
export const decodeBotElement = decoder(BotElement);

/** The schemas of the site's whole states, as their entries carry them. */
const stateSchemas = Object.fromEntries(
  siteStates.map(({ field, kind }) => [field, journalKinds[kind].schema]),
) as SiteStateSchemas;

export const Snapshot = closed({
  epoch: Epoch,
  seq: Seq,
  /** Chain digest at `seq`. */
  chain: Sha256Text,
  ...stateSchemas,
  /** Sent to agents that take it (`position.ts`). */
  policy_classes: Type.Optional(journalKinds["policy.classes"].schema),
  /**
   * The active viewsets, each with the place of the entry that activated it, whose receipts are the proof;
   * null if no entry is told of.
   */
  viewsets: Type.Array(
    closed({
      ...journalKinds["viewset.activated"].schema.properties,
      seq: Type.Union([Seq, Type.Null()]),
    }),
  ),
  bots: Type.Array(BotSetState),
  /** The numbers of the last `key.changed` and `certificate.changed`; null if there was none. */
  vault_entries: closed({
    keys: Type.Union([Seq, Type.Null()]),
    certificates: Type.Union([Seq, Type.Null()]),
  }),
  /** Imports that no receipt has ended, with the place of their entry. */
  imports: Type.Array(closed({ seq: Seq, import_id: Type.String(), domain: HostText })),
  /**
   * Whether the whole cache is to be dropped at once, also where it could be dropped one domain after the
   * other.
   */
  clear_now: Type.Optional(Type.Boolean()),
});
export type Snapshot = Static<typeof Snapshot>;
export const decodeSnapshot = decoder(Snapshot);

/**
 * Decodes the answer to `GET /agent-api/v1/bot-sets/{domain}/{set}`: one set as it is now, fetched after a
 * mismatch.
 */
export const decodeBotSetState = decoder(BotSetState);
