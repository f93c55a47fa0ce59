// `GET /agent-api/v1/snapshot`: the whole desired state of a deployment site at one journal position, read in one transaction.

import { Type, type Static } from "typebox";
import { closed, decoder } from "./validate.ts";
import { BotElement, BotSetName, journalBodies } from "./journal.ts";
import { Count, Epoch, HostText, Seq, Sha256Text } from "./parts.ts";

/** A whole set is a blob: canonical JSON `[{bot, range}]`, sorted by range, then bot. */
export const BotSetState = closed({
  domain: HostText,
  set: BotSetName,
  version: Count,
  count: Count,
  digest: Sha256Text,
  blob: Sha256Text,
});
export type BotSetState = Static<typeof BotSetState>;

export const BotSetContent = Type.Array(BotElement);
export const decodeBotSetContent = decoder(BotSetContent);

export const Snapshot = closed({
  epoch: Epoch,
  seq: Seq,
  /** Chain digest at `seq`. */
  chain: Sha256Text,
  domains: journalBodies["domains.changed"],
  policy: journalBodies["policy.changed"],
  viewsets: Type.Array(journalBodies["viewset.activated"]),
  bots: Type.Array(BotSetState),
  /** Imports that no receipt has ended, with the place of their entry. */
  imports: Type.Array(closed({ seq: Seq, import_id: Type.String(), domain: HostText })),
});
export type Snapshot = Static<typeof Snapshot>;
export const decodeSnapshot = decoder(Snapshot);

/** `GET /agent-api/v1/bot-sets/{domain}/{set}`: one set as it is now, after a mismatch. */
export const decodeBotSetState = decoder(BotSetState);
