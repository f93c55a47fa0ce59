// Reads the key table of `devlove/1` off the schema, for people.

import { DevloveSchema } from "../../src/core/serving/devlove.ts";
import { withoutNull } from "../../src/wire/shape-errors.ts";
import type { ShapeSchema } from "../../src/wire/shape-errors.ts";

export type DevloveKey = {
  readonly key: string;
  readonly type: string;
  readonly isRequired: boolean;
  /** Undefined if there is no default. */
  readonly default: unknown;
  readonly description: string;
  /** Valid values. */
  readonly examples: readonly unknown[];
};

/** One row for each key of a domain, in the order of the schema. */
export function devloveKeys(): readonly DevloveKey[] {
  const domains: ShapeSchema = DevloveSchema.properties.domains;
  return Object.values(domains.patternProperties ?? {}).flatMap((domain) => keysOf(domain, ""));
}

function keysOf(schema: ShapeSchema, prefix: string): readonly DevloveKey[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const { bare } = withoutNull(child);
    const row = {
      key: prefix + name,
      type: typeOf(child),
      isRequired: schema.required?.includes(name) ?? false,
      default: child.default,
      description: child.description ?? "",
      examples: child.examples ?? [],
    };
    return [row, ...keysOf(bare.items ?? bare, `${row.key}.`)];
  });
}

function typeOf(schema: ShapeSchema): string {
  const { bare, nullable } = withoutNull(schema);
  const or = nullable ? " or null" : "";
  if (bare.enum !== undefined) return bare.enum.join(" | ") + or;
  if (bare.items !== undefined) return `list of ${typeOf(bare.items)}${or}`;
  const { minimum, maximum } = bare;
  const range = minimum === undefined || maximum === undefined ? "" : ` ${minimum} to ${maximum}`;
  return (bare.type ?? "") + range + or;
}
