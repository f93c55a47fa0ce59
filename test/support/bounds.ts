// Bounds of what arrives, seen from outside: a value at its bound is taken, the one beyond it is refused.

import { expect, test } from "vitest";

type Make = (n: number) => unknown;

/** Members and positions with dots between them; the least and the most, null where nothing bounds it; what `n` of it is, without which it is a text. */
export type Bound = readonly [path: string, least: number | null, most: number | null, make?: Make];

export const number: Make = (n) => n;
/** A list of as many. */
export const items =
  (item: unknown): Make =>
  (n) =>
    Array.from({ length: n }, () => item);
const characters: Make = (n) => "a".repeat(n);

/** Of a message that is valid as it is given. */
export function testBounds(
  name: string,
  decode: (raw: unknown) => { readonly ok: boolean },
  valid: unknown,
  bounds: readonly Bound[],
): void {
  for (const [path, least, most, make = characters] of bounds)
    test(`${name}: ${path} is ${least ?? "anything"} to ${most ?? "anything"}`, () => {
      const takes = (n: number): boolean => decode(put(valid, path.split("."), make(n))).ok;
      expect(decode(valid)).toMatchObject({ ok: true });
      if (least !== null) expect(takes(least)).toBe(true);
      if (most !== null) expect([takes(most), takes(most + 1)]).toEqual([true, false]);
      // There is no text of fewer than no characters.
      if (least !== null && (least > 0 || make === number)) expect(takes(least - 1)).toBe(false);
    });
}

/** The same value but for what stands there. */
function put(value: unknown, [member, ...rest]: readonly string[], what: unknown): unknown {
  if (member === undefined) return what;
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value;
    return list.with(Number(member), put(list[Number(member)], rest, what));
  }
  const members = new Map<string, unknown>(Object.entries(Object(value)));
  if (!members.has(member)) throw new TypeError(`the value has no ${member}`);
  return Object.fromEntries(members.set(member, put(members.get(member), rest, what)));
}
