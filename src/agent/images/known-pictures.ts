// What the encoder found of bytes for good, so that the same picture at another URL, in another width or format costs nothing. It is known by digest, for all workers and
// domains, until the agent starts again: then the libraries may be others. Bounded: what was asked for longest ago is forgotten.

import type { ImageForm } from "../../core/images/image-form.ts";
import type { EncodeOutcome } from "./encoder-messages.ts";

/** Some 250 bytes each. */
const unreadableMax = 4_096;
const worthlessMax = 16_384;

/** One form of some bytes. */
export type FormOfPicture = {
  /** SHA-256 of the original, in hexadecimal digits. */
  readonly digest: string;
  readonly form: ImageForm;
  /** 1 to 100. */
  readonly quality: number;
};

type Lasting = Extract<EncodeOutcome, { readonly kind: "unreadable" | "worthless" }>;

export class KnownPictures {
  /** By digest: bytes that are no picture that is taken are so in every form. */
  readonly #unreadable = new Map<string, Lasting>();
  /** By digest, form and quality. */
  readonly #worthless = new Map<string, Lasting>();

  /** Returns what would come of the form; undefined: it is not known. */
  find(picture: FormOfPicture): Lasting | undefined {
    return (
      refreshed(this.#unreadable, picture.digest) ?? refreshed(this.#worthless, nameOf(picture))
    );
  }

  /** Notes what came of the form, where it stays so for these bytes. */
  note(picture: FormOfPicture, outcome: EncodeOutcome): void {
    switch (outcome.kind) {
      case "unreadable":
        return keep(this.#unreadable, picture.digest, outcome, unreadableMax);
      case "worthless":
        return keep(this.#worthless, nameOf(picture), outcome, worthlessMax);
      case "made":
      case "failed":
        return;
      default:
        outcome satisfies never;
    }
  }
}

const nameOf = ({ digest, form, quality }: FormOfPicture): string => `${digest} ${form} ${quality}`;

/** Finds what is known, and puts it behind all others, so that it is forgotten last. */
function refreshed(known: Map<string, Lasting>, name: string): Lasting | undefined {
  const found = known.get(name);
  if (found === undefined) return undefined;
  known.delete(name);
  known.set(name, found);
  return found;
}

function keep(known: Map<string, Lasting>, name: string, outcome: Lasting, most: number): void {
  known.delete(name);
  known.set(name, outcome);
  const [oldest] = known.keys();
  if (known.size > most && oldest !== undefined) known.delete(oldest);
}
