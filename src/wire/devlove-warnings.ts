// What `devlove/validate` says about a valid document: what in it is perhaps not meant so, and what its presets
// stand for.

import { presetRules } from "../core/serving/cache-presets.ts";
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

export type DevlovePreset = {
  /** JSON Pointer (RFC 6901) to the preset. */
  readonly path: string;
  /** The rules that it stands for, as a document would say them. */
  readonly rules: readonly Readonly<Record<string, unknown>>[];
};

/** The most presets that are written out; a document may have thousands of domains. */
export const presetsShownMax = 20;

export function devlovePresets({ domains }: Devlove): readonly DevlovePreset[] {
  const shown: DevlovePreset[] = [];
  for (const [name, { cache }] of Object.entries(domains))
    for (const [at, preset] of (cache?.presets ?? []).entries()) {
      if (shown.length >= presetsShownMax) return shown;
      const path = pointer(["domains", name, "cache", "presets", at]);
      shown.push({ path, rules: presetRules(preset).map((rule) => ({ ...rule })) });
    }
  return shown;
}
