// Reads what the devlove of a version says of certificates, from the version's manifest.

import { acmeSaid, type AcmeSaid } from "../../core/acme/wanted-names.ts";
import { messageOf } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { takeDevlove } from "../../wire/devlove-validate.ts";
import { manifestBeginning, manifestBeginningBytesMax } from "../../wire/manifest.ts";
import type { UnreadDomain } from "../store/acme/acme-domains.ts";
import type { Blobs } from "../store/objects/object-store.ts";

export type DevloveBlobs = Pick<Blobs, "read" | "open" | "sizeOf">;

export type AcmeSaidRead =
  /** Undefined: it orders nothing. */
  | { readonly ok: true; readonly said: AcmeSaid | undefined }
  | { readonly ok: false; readonly reason: string };

export class AcmeDevloves {
  readonly #blobs: DevloveBlobs;

  constructor(blobs: DevloveBlobs) {
    this.#blobs = blobs;
  }

  /** Never rejects: one that cannot be read now may be read later. */
  async read({ domain, manifest }: UnreadDomain): Promise<AcmeSaidRead> {
    try {
      const begins = await this.#beginningOf(manifest);
      const [, schema = "", digest = ""] = manifestBeginning.exec(begins) ?? [];
      const sha256 = parseSha256(digest);
      const bytes = sha256 && (await this.#blobs.read(sha256));
      if (bytes === undefined)
        return { ok: false, reason: `the manifest ${manifest} names no devlove that is there` };
      const taken = takeDevlove(schema, new TextDecoder().decode(bytes));
      return taken.ok ? { ok: true, said: acmeSaid(taken.devlove, domain) } : taken;
    } catch (error) {
      return { ok: false, reason: messageOf(error) };
    }
  }

  async #beginningOf(manifest: Sha256): Promise<string> {
    if ((await this.#blobs.sizeOf(manifest)) === undefined)
      throw new Error(`the manifest ${manifest} is missing`);
    const chunks: Buffer[] = [];
    const stream = await this.#blobs.open(manifest, 0, manifestBeginningBytesMax - 1);
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks).toString("latin1");
  }
}
