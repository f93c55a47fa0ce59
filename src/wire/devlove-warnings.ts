// What `devlove/validate` says about a document that is valid but perhaps not meant so.

import { devloveCautions } from "../core/serving/devlove-cautions.ts";
import type { Devlove } from "../core/serving/devlove.ts";
import { pointer } from "./shape-errors.ts";

export type DevloveWarning = {
  /** JSON Pointer (RFC 6901) into the document. */
  readonly path: string;
  readonly message: string;
};

export function devloveWarnings(devlove: Devlove): readonly DevloveWarning[] {
  return devloveCautions(devlove).map(({ path, message }) => ({ path: pointer(path), message }));
}
