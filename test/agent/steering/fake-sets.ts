// Central's side of bot sets for steering: what it has, what it answers, and how that may be harmed on its way.

import { AccelError } from "../../../src/core/faults.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../src/core/addresses/set-digest.ts";
import type { BotSetState } from "../../../src/wire/snapshot.ts";

/** A digest that begins with the text. */
export function digestOf(text: string): Sha256 {
  const sha256 = parseSha256(Buffer.from(text).toString("hex").padEnd(64, "0"));
  if (sha256 === undefined) throw new Error(`${text} is too long`);
  return sha256;
}

/** Central's side: sets by `kind/host`. */
export class FakeCentral {
  readonly sets = new Map<
    string,
    { readonly version: number; readonly elements: readonly SetElement[] }
  >();
  fetches = 0;
  shrinkMeant = false;
  /** What arrives of a whole set. */
  harm: (elements: readonly SetElement[]) => Iterable<SetElement> = (elements) => elements;

  async getBotSet(host: string, kind: "bad" | "vip"): Promise<BotSetState> {
    const { version, elements } = this.sets.get(`${kind}/${host}`) ?? { version: 0, elements: [] };
    return setState(host, kind, version, elements, this.shrinkMeant);
  }

  async *read(blob: Sha256): AsyncGenerator<readonly SetElement[]> {
    this.fetches++;
    const found = [...this.sets.values()].find(({ elements }) => digestOfSet(elements) === blob);
    if (found === undefined) throw new AccelError("CENTRAL_UNREACHABLE", "no such blob");
    for (const element of this.harm(found.elements)) yield [element];
  }
}

export function setState(
  domain: string,
  set: "bad" | "vip",
  version: number,
  elements: readonly SetElement[],
  shrinkMeant = false,
): BotSetState {
  const digest = digestOfSet(elements);
  return {
    domain,
    set,
    version,
    count: elements.length,
    digest,
    blob: digest,
    shrink_meant: shrinkMeant,
  };
}

export function digestOfSet(elements: readonly SetElement[]): Sha256 {
  const digest = parseSha256(changedSetDigest(emptySetDigest, elements, []));
  if (digest === undefined) throw new Error("no digest");
  return digest;
}
