// How the encoder of this host stands: whether it is there, whether it dies, and what operators are told of that.

import type { Instruments } from "../../base/metrics.ts";
import type { EncoderVersions } from "./encoder-messages.ts";

export type EncoderStanding = {
  /** `not needed`: no picture has been asked for since the start. */
  readonly encoder: "off" | "absent" | "not needed" | "running" | "at rest" | "failing";
  readonly reason?: string;
  readonly versions?: EncoderVersions;
};

export type EncoderHealthOptions = Pick<Instruments, "health" | "log"> & {
  /** What is used; text: why nothing is. */
  readonly encoder: object | string;
};

/** Where sharp was missing it is looked for again after so long: an operator may have installed it. */
const absentMs = 600_000;
/** One death is a picture's. So many in a row are the host's. */
const deathsTold = 3;

export const installHint =
  "The Debian package has sharp. Beside the npm package: npm install sharp, for the processor and the C library of this host. Without it every original is sent as it is.";

export class EncoderHealth {
  readonly #options: EncoderHealthOptions;
  #versions: EncoderVersions | undefined;
  #absent: { readonly reason: string; readonly untilMs: number } | undefined;
  #deaths = 0;
  #lastDeath = "";

  constructor(options: EncoderHealthOptions) {
    this.#options = options;
  }

  /** Returns why there is no encoder, for as long as that is not asked again. */
  absence(): string | undefined {
    if (this.#absent !== undefined && performance.now() < this.#absent.untilMs)
      return this.#absent.reason;
    return undefined;
  }

  absent(reason: string): void {
    const { health, log } = this.#options;
    if (this.#absent === undefined)
      log.warn({ reason }, "pictures are to be made smaller, and this host has no encoder");
    this.#absent = { reason, untilMs: performance.now() + absentMs };
    health.raise(
      "images_no_encoder",
      "warning",
      `pictures are to be made smaller (images.optimize), and cannot be here: ${reason}`,
      installHint,
    );
  }

  opened(versions: EncoderVersions): void {
    this.#versions = versions;
    this.#absent = undefined;
    this.#options.health.settle("images_no_encoder");
  }

  isWell(): void {
    this.#deaths = 0;
    this.#options.health.settle("images_encoder_failing");
  }

  died(reason: string): void {
    this.#deaths += 1;
    this.#lastDeath = reason;
    if (this.#deaths < deathsTold) return;
    this.#options.health.raise(
      "images_encoder_failing",
      "warning",
      `the encoder of pictures died ${this.#deaths} times in a row: ${reason}`,
      "See the agent's log. `images.memory_max` may be too little, or the host has no memory or no processor time left.",
    );
  }

  /** Returns the pause before the next picture, which doubles with each death. */
  pauseMs(firstMs: number, mostMs: number): number {
    return this.#deaths === 0 ? 0 : Math.min(mostMs, firstMs * 2 ** Math.min(this.#deaths - 1, 30));
  }

  standing(isRunning: boolean): EncoderStanding {
    const { encoder } = this.#options;
    if (typeof encoder === "string") return { encoder: "off", reason: encoder };
    if (this.#absent !== undefined) return { encoder: "absent", reason: this.#absent.reason };
    const versions = this.#versions === undefined ? {} : { versions: this.#versions };
    if (this.#deaths >= deathsTold)
      return { encoder: "failing", reason: this.#lastDeath, ...versions };
    if (isRunning) return { encoder: "running", ...versions };
    return { encoder: this.#versions === undefined ? "not needed" : "at rest", ...versions };
  }
}
