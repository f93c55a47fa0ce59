// The answers of OCSP that this worker sends along with certificates. They were verified by main; here only their time is looked at.

import { hash } from "node:crypto";
import type { Staple } from "../../../core/serving/staple.ts";

export class Staples {
  readonly #nowMs: () => number;
  #byFingerprint: ReadonlyMap<string, Staple> = new Map();

  /** `nowMs` is the wall clock's. */
  constructor(nowMs: () => number, staples: readonly Staple[] = []) {
    this.#nowMs = nowMs;
    this.take(staples);
  }

  /** Takes all that there are; those of before are forgotten. */
  take(staples: readonly Staple[]): void {
    this.#byFingerprint = new Map(staples.map((staple) => [staple.fingerprint, staple]));
  }

  /** Returns the answer for a certificate in DER; null if there is none of now. Node wants a Buffer. */
  find(leaf: Uint8Array): Buffer | null {
    if (this.#byFingerprint.size === 0) return null;
    const staple = this.#byFingerprint.get(hash("sha256", leaf));
    if (staple === undefined || staple.untilMs <= this.#nowMs()) return null;
    return Buffer.from(staple.response);
  }
}
