// The encoder as its process runs it: it loads the library when it is first asked, and answers one question after the other.

import { messageOf } from "../../core/faults.ts";
import type { EncoderVersions, FromEncoder, ToEncoder } from "./encoder-messages.ts";
import { makePicture, restrictLibrary, type PictureLibrary } from "./picture-maker.ts";

/** Rejects where it is not installed, or does not run on this host. */
export type LoadLibrary = () => Promise<PictureLibrary>;

export class PictureEncoder {
  readonly #load: LoadLibrary;
  readonly #cpuMs: () => number;
  #library: Promise<PictureLibrary | string> | undefined;

  /** `cpuMs` returns the processor time of the process so far. */
  constructor(load: LoadLibrary, cpuMs: () => number) {
    this.#load = load;
    this.#cpuMs = cpuMs;
  }

  /** Never rejects. */
  async answer(asked: ToEncoder): Promise<FromEncoder> {
    const library = await (this.#library ??= this.#open());
    if (typeof library === "string") return { kind: "absent", reason: library };
    switch (asked.kind) {
      case "open":
        return { kind: "opened", versions: versionsOf(library) };
      case "encode": {
        const before = this.#cpuMs();
        const outcome = await makePicture(library, asked);
        return { kind: "encoded", outcome, cpuMs: this.#cpuMs() - before };
      }
      default:
        return asked satisfies never;
    }
  }

  /** Returns why there is none as text. */
  async #open(): Promise<PictureLibrary | string> {
    try {
      const library = await this.#load();
      restrictLibrary(library);
      return library;
    } catch (error) {
      return absenceOf(messageOf(error));
    }
  }
}

/** Libraries that pictures go through, for operators who ask whether a hole in one of them is here. */
const toldLibraries = ["sharp", "vips", "aom", "heif", "webp", "mozjpeg", "png"] as const;

function versionsOf({ versions }: PictureLibrary): EncoderVersions {
  const all: Readonly<Record<string, string | undefined>> = versions;
  return Object.fromEntries(
    toldLibraries.flatMap((name) => {
      const version = all[name];
      return version === undefined ? [] : [[name, version] as const];
    }),
  );
}

/** The library's own words take a page, and tell how to install it with tools that a host does not have. */
function absenceOf(message: string): string {
  const [line = ""] = message.split("\n");
  return /cannot find (?:package|module)/i.test(line)
    ? "sharp is not installed"
    : `sharp cannot be loaded: ${line}`;
}
