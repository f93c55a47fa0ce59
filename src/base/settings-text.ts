// The text of a settings file with some of its keys set by a program: comments and all other keys stay as they are.

import { Document, isMap, parseDocument } from "yaml";
import { AccelError } from "../core/faults.ts";
import { yamlReason } from "./settings.ts";

/**
 * Sets top-level keys in the text of a settings file, or in a new one that begins with `note`. An undefined value removes
 * its key. Throws SETTINGS_INVALID for text that is no YAML.
 */
export function withKeys(
  before: string | undefined,
  keys: Readonly<Record<string, string | undefined>>,
  note: string,
): string {
  const document = before === undefined ? new Document({}) : parseDocument(before);
  const [fault] = document.errors;
  if (fault !== undefined)
    throw new AccelError(
      "SETTINGS_INVALID",
      `the settings file is no YAML: ${yamlReason(fault, before ?? "")}`,
    );
  if (document.contents !== null && !isMap(document.contents))
    throw new AccelError("SETTINGS_INVALID", "the settings file must be a mapping of keys");
  if (before === undefined) document.commentBefore = ` ${note}`;
  for (const [key, value] of Object.entries(keys))
    if (value === undefined) document.delete(key);
    else document.set(key, value);
  return document.toString({ lineWidth: 0 });
}
