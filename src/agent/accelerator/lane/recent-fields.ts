// What each peer said last, beyond its connection: browsers open several connections at once, and say the same on each. Whoever reads a head compares its bytes.

import type { ClientAddress } from "../../../core/http/client-address.ts";
import type { PlainFields } from "./head-scanner.ts";

/** About 8 KiB each with what is found of them: 8 MiB. */
const peersMax = 1_024;

export class RecentFields {
  readonly #byPeer = new Map<string, PlainFields>();

  of(peer: ClientAddress | undefined): PlainFields | undefined {
    return peer === undefined ? undefined : this.#byPeer.get(nameOf(peer));
  }

  keep(peer: ClientAddress | undefined, said: PlainFields): void {
    if (peer === undefined) return;
    if (this.#byPeer.size >= peersMax) this.#byPeer.clear();
    this.#byPeer.set(nameOf(peer), said);
  }
}

/** Two peers of one name are alike in everything that an answer and its record depend on. */
function nameOf({ scheme, isProxied, text }: ClientAddress): string {
  return `${scheme} ${isProxied ? "proxy" : "peer"} ${text}`;
}
